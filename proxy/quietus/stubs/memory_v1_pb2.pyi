from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Retention(_message.Message):
    __slots__ = ("subject", "purpose", "ttl")
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    subject: str
    purpose: str
    ttl: float
    def __init__(self, subject: _Optional[str] = ..., purpose: _Optional[str] = ..., ttl: _Optional[float] = ...) -> None: ...

class Draft(_message.Message):
    __slots__ = ("tenant", "key", "value", "retention", "scope", "derived_from", "salience")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    DERIVED_FROM_FIELD_NUMBER: _ClassVar[int]
    SALIENCE_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    key: str
    value: str
    retention: Retention
    scope: str
    derived_from: _containers.RepeatedScalarFieldContainer[str]
    salience: float
    def __init__(self, tenant: _Optional[str] = ..., key: _Optional[str] = ..., value: _Optional[str] = ..., retention: _Optional[_Union[Retention, _Mapping]] = ..., scope: _Optional[str] = ..., derived_from: _Optional[_Iterable[str]] = ..., salience: _Optional[float] = ...) -> None: ...

class WriteRequest(_message.Message):
    __slots__ = ("tenant", "key", "value", "retention", "scope", "derived_from", "salience", "memories")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    DERIVED_FROM_FIELD_NUMBER: _ClassVar[int]
    SALIENCE_FIELD_NUMBER: _ClassVar[int]
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    key: str
    value: str
    retention: Retention
    scope: str
    derived_from: _containers.RepeatedScalarFieldContainer[str]
    salience: float
    memories: _containers.RepeatedCompositeFieldContainer[Draft]
    def __init__(self, tenant: _Optional[str] = ..., key: _Optional[str] = ..., value: _Optional[str] = ..., retention: _Optional[_Union[Retention, _Mapping]] = ..., scope: _Optional[str] = ..., derived_from: _Optional[_Iterable[str]] = ..., salience: _Optional[float] = ..., memories: _Optional[_Iterable[_Union[Draft, _Mapping]]] = ...) -> None: ...

class Written(_message.Message):
    __slots__ = ("key", "status", "merged_with")
    KEY_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    MERGED_WITH_FIELD_NUMBER: _ClassVar[int]
    key: str
    status: str
    merged_with: str
    def __init__(self, key: _Optional[str] = ..., status: _Optional[str] = ..., merged_with: _Optional[str] = ...) -> None: ...

class WriteResponse(_message.Message):
    __slots__ = ("key", "status", "merged_with", "results")
    KEY_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    MERGED_WITH_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    key: str
    status: str
    merged_with: str
    results: _containers.RepeatedCompositeFieldContainer[Written]
    def __init__(self, key: _Optional[str] = ..., status: _Optional[str] = ..., merged_with: _Optional[str] = ..., results: _Optional[_Iterable[_Union[Written, _Mapping]]] = ...) -> None: ...

class IngestResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[Written]
    def __init__(self, results: _Optional[_Iterable[_Union[Written, _Mapping]]] = ...) -> None: ...

class Memory(_message.Message):
    __slots__ = ("key", "value", "subject", "purpose", "scope", "tenant", "derived_from", "created_at", "provenance_resolved", "salience", "queries", "score", "vector")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    DERIVED_FROM_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    PROVENANCE_RESOLVED_FIELD_NUMBER: _ClassVar[int]
    SALIENCE_FIELD_NUMBER: _ClassVar[int]
    QUERIES_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    VECTOR_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    subject: str
    purpose: str
    scope: str
    tenant: str
    derived_from: _containers.RepeatedScalarFieldContainer[str]
    created_at: float
    provenance_resolved: bool
    salience: float
    queries: _containers.RepeatedScalarFieldContainer[str]
    score: float
    vector: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ..., subject: _Optional[str] = ..., purpose: _Optional[str] = ..., scope: _Optional[str] = ..., tenant: _Optional[str] = ..., derived_from: _Optional[_Iterable[str]] = ..., created_at: _Optional[float] = ..., provenance_resolved: _Optional[bool] = ..., salience: _Optional[float] = ..., queries: _Optional[_Iterable[str]] = ..., score: _Optional[float] = ..., vector: _Optional[_Iterable[float]] = ...) -> None: ...

class ReadRequest(_message.Message):
    __slots__ = ("key", "tenant")
    KEY_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    key: str
    tenant: str
    def __init__(self, key: _Optional[str] = ..., tenant: _Optional[str] = ...) -> None: ...

class ListRequest(_message.Message):
    __slots__ = ("tenant", "subject", "purpose", "scope", "limit", "cursor")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    subject: str
    purpose: str
    scope: str
    limit: int
    cursor: str
    def __init__(self, tenant: _Optional[str] = ..., subject: _Optional[str] = ..., purpose: _Optional[str] = ..., scope: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListResponse(_message.Message):
    __slots__ = ("results", "next")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[Memory]
    next: str
    def __init__(self, results: _Optional[_Iterable[_Union[Memory, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class RecallRequest(_message.Message):
    __slots__ = ("query", "tenant", "subject", "purpose", "scope", "top_k", "vector", "include")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    VECTOR_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_FIELD_NUMBER: _ClassVar[int]
    query: str
    tenant: str
    subject: str
    purpose: str
    scope: str
    top_k: int
    vector: _containers.RepeatedScalarFieldContainer[float]
    include: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, query: _Optional[str] = ..., tenant: _Optional[str] = ..., subject: _Optional[str] = ..., purpose: _Optional[str] = ..., scope: _Optional[str] = ..., top_k: _Optional[int] = ..., vector: _Optional[_Iterable[float]] = ..., include: _Optional[_Iterable[str]] = ...) -> None: ...

class RecallResponse(_message.Message):
    __slots__ = ("results", "read_epoch")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    READ_EPOCH_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[Memory]
    read_epoch: int
    def __init__(self, results: _Optional[_Iterable[_Union[Memory, _Mapping]]] = ..., read_epoch: _Optional[int] = ...) -> None: ...

class ForgetRequest(_message.Message):
    __slots__ = ("tenant", "subject", "keys", "scope", "purposes", "basis")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    PURPOSES_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    subject: str
    keys: _containers.RepeatedScalarFieldContainer[str]
    scope: str
    purposes: _containers.RepeatedScalarFieldContainer[str]
    basis: str
    def __init__(self, tenant: _Optional[str] = ..., subject: _Optional[str] = ..., keys: _Optional[_Iterable[str]] = ..., scope: _Optional[str] = ..., purposes: _Optional[_Iterable[str]] = ..., basis: _Optional[str] = ...) -> None: ...

class Failure(_message.Message):
    __slots__ = ("key", "error")
    KEY_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    key: str
    error: str
    def __init__(self, key: _Optional[str] = ..., error: _Optional[str] = ...) -> None: ...

class ForgetResponse(_message.Message):
    __slots__ = ("status", "keys", "deleted", "records_removed", "token", "effectuation", "failures", "erasure_epoch")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    RECORDS_REMOVED_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    EFFECTUATION_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    ERASURE_EPOCH_FIELD_NUMBER: _ClassVar[int]
    status: str
    keys: int
    deleted: int
    records_removed: int
    token: str
    effectuation: str
    failures: _containers.RepeatedCompositeFieldContainer[Failure]
    erasure_epoch: int
    def __init__(self, status: _Optional[str] = ..., keys: _Optional[int] = ..., deleted: _Optional[int] = ..., records_removed: _Optional[int] = ..., token: _Optional[str] = ..., effectuation: _Optional[str] = ..., failures: _Optional[_Iterable[_Union[Failure, _Mapping]]] = ..., erasure_epoch: _Optional[int] = ...) -> None: ...

class DeleteRequest(_message.Message):
    __slots__ = ("key", "tenant")
    KEY_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    key: str
    tenant: str
    def __init__(self, key: _Optional[str] = ..., tenant: _Optional[str] = ...) -> None: ...

class DeleteResponse(_message.Message):
    __slots__ = ("status", "deleted")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    status: str
    deleted: int
    def __init__(self, status: _Optional[str] = ..., deleted: _Optional[int] = ...) -> None: ...

class ExportRequest(_message.Message):
    __slots__ = ("tenant", "subject", "purpose", "scope")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    subject: str
    purpose: str
    scope: str
    def __init__(self, tenant: _Optional[str] = ..., subject: _Optional[str] = ..., purpose: _Optional[str] = ..., scope: _Optional[str] = ...) -> None: ...

class GetEpochRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetEpochResponse(_message.Message):
    __slots__ = ("read_epoch",)
    READ_EPOCH_FIELD_NUMBER: _ClassVar[int]
    read_epoch: int
    def __init__(self, read_epoch: _Optional[int] = ...) -> None: ...
