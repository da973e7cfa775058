# Quietus as an image: the interpreter, what it needs, and nothing else; no shell, no package manager.
#
#   docker build --build-arg BUILD=python:3.11-slim-bookworm --tag quietus .
#
# BUILD is any image of a glibc Linux with Python >= 3.11, venv, pip and ldd; pin it by digest. What is installed
# into it is held to the hashes of requirements-image.lock.
ARG BUILD=python:3.11-slim-bookworm

FROM ${BUILD} AS build
WORKDIR /src
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1
COPY requirements-image.lock ./
RUN python3 -m venv --copies /opt/quietus \
    && /opt/quietus/bin/pip install --require-hashes --no-deps -r requirements-image.lock
COPY pyproject.toml README.md LICENSE ./
COPY proxy proxy
COPY policies policies
COPY docs/memory-tool.openapi.yaml docs/memory-tool.openapi.yaml
COPY scripts/rootfs.py scripts/rootfs.py
RUN /opt/quietus/bin/pip install --no-deps --no-build-isolation . \
    && python3 scripts/rootfs.py /opt/quietus /rootfs

FROM scratch
ARG VERSION=0.1.0.dev0
ARG REVISION=unknown
ARG CREATED=1970-01-01T00:00:00Z
LABEL org.opencontainers.image.title="quietus" \
      org.opencontainers.image.description="A sidecar in front of an agent's memory store: nobody recalls what was forgotten" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}"
COPY --from=build /rootfs /
# Nothing is written but to /tmp and to the ledger's volume: the root may be read-only.
ENV PATH=/opt/quietus/bin LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 NO_COLOR=1
USER 65532:65532
WORKDIR /tmp
EXPOSE 8700 8701 8711 8712
ENTRYPOINT ["/opt/quietus/bin/quietus"]
CMD ["serve"]
