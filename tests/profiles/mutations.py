"""Ways to write a path so that a careless parser takes it for another."""

from collections.abc import Iterator


def mutations(path: str) -> Iterator[str]:
    """Targets that must not be taken for the route that `path` is."""
    head, _, last = path.rpartition("/")
    if last and path != "/":
        first = f"%{ord(last[0]):02x}"
        if last != "k":  # in a parameter an escape is another spelling of the same id
            yield f"{head}/{first}{last[1:]}"
            yield f"{head}/{last.swapcase()}" if last.swapcase() != last else f"{head}/{last}x"
            yield f"{head}/{last}x"
            yield f"{head}/{last}%20"
        yield f"{head}/{last}/"
        yield f"{head}/{last}%00"
        yield f"{head}/{last}%2f"
        yield f"{head}/{last}%5c"
        yield f"{head}/%252e/{last}"
        yield f"{head}/{last}%0d%0a"
    yield f"/{path}"
    yield f"/.{path}"
    yield f"/x/..{path}"
    yield f"/%2e{path}"
    yield f"/%2e%2e{path}"
    yield f"{path};x=1"
    yield f"{path}#x"
    yield f"{path}\\"
    yield f"{path}%"
    yield f"{path}%zz"
    yield f"{path}\t"
    yield f"{path} "
    yield f"{path}\x00"
    yield f"http://other{path}"
    yield path[1:] or "*"
    yield path.replace("/", "\\")
    yield path.replace("/", "/./", 1)
    yield path + "/.."
    yield path + "/."
    yield path + "/%2e%2e"
    yield path + "é"
    yield path.replace("/", "%2f")
