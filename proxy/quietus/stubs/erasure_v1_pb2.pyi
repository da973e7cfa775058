import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Predicate(_message.Message):
    __slots__ = ("tenant", "subject", "purpose", "path", "key")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    tenant: _containers.RepeatedScalarFieldContainer[str]
    subject: _containers.RepeatedScalarFieldContainer[str]
    purpose: _containers.RepeatedScalarFieldContainer[str]
    path: _containers.RepeatedScalarFieldContainer[str]
    key: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, tenant: _Optional[_Iterable[str]] = ..., subject: _Optional[_Iterable[str]] = ..., purpose: _Optional[_Iterable[str]] = ..., path: _Optional[_Iterable[str]] = ..., key: _Optional[_Iterable[str]] = ...) -> None: ...

class Epochs(_message.Message):
    __slots__ = ("erasure", "read", "source")
    ERASURE_FIELD_NUMBER: _ClassVar[int]
    READ_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    erasure: int
    read: int
    source: str
    def __init__(self, erasure: _Optional[int] = ..., read: _Optional[int] = ..., source: _Optional[str] = ...) -> None: ...

class Surface(_message.Message):
    __slots__ = ("name", "kind", "outcome", "control", "residual", "probed_at", "reason")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    CONTROL_FIELD_NUMBER: _ClassVar[int]
    RESIDUAL_FIELD_NUMBER: _ClassVar[int]
    PROBED_AT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    outcome: str
    control: str
    residual: int
    probed_at: _timestamp_pb2.Timestamp
    reason: str
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., outcome: _Optional[str] = ..., control: _Optional[str] = ..., residual: _Optional[int] = ..., probed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., reason: _Optional[str] = ...) -> None: ...

class Lineage(_message.Message):
    __slots__ = ("descendants", "cascaded", "quarantined", "unlinked", "escalated")
    DESCENDANTS_FIELD_NUMBER: _ClassVar[int]
    CASCADED_FIELD_NUMBER: _ClassVar[int]
    QUARANTINED_FIELD_NUMBER: _ClassVar[int]
    UNLINKED_FIELD_NUMBER: _ClassVar[int]
    ESCALATED_FIELD_NUMBER: _ClassVar[int]
    descendants: int
    cascaded: int
    quarantined: int
    unlinked: int
    escalated: int
    def __init__(self, descendants: _Optional[int] = ..., cascaded: _Optional[int] = ..., quarantined: _Optional[int] = ..., unlinked: _Optional[int] = ..., escalated: _Optional[int] = ...) -> None: ...

class Claim(_message.Message):
    __slots__ = ("status", "count", "at")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    status: str
    count: int
    at: _timestamp_pb2.Timestamp
    def __init__(self, status: _Optional[str] = ..., count: _Optional[int] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Erasure(_message.Message):
    __slots__ = ("id", "store", "state", "verdict", "policy_phase", "read_phase", "may_assert_erasure", "may_assert_non_recallability", "through", "missing_for_compliant", "overdue", "held", "escalated", "predicate", "tokens", "epochs", "requested_at", "acknowledged_at", "settled_at", "bound_at", "due_at", "received_at", "readmitted_at", "exposure_seconds", "basis", "reference", "surfaces", "lineage", "claim", "acknowledged", "primary_removed", "reconstruction_paths_severed", "effective_non_recoverability", "access_paths", "suppressed", "upstream_calls", "client_calls", "reason", "why", "receipt_salt")
    ID_FIELD_NUMBER: _ClassVar[int]
    STORE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    POLICY_PHASE_FIELD_NUMBER: _ClassVar[int]
    READ_PHASE_FIELD_NUMBER: _ClassVar[int]
    MAY_ASSERT_ERASURE_FIELD_NUMBER: _ClassVar[int]
    MAY_ASSERT_NON_RECALLABILITY_FIELD_NUMBER: _ClassVar[int]
    THROUGH_FIELD_NUMBER: _ClassVar[int]
    MISSING_FOR_COMPLIANT_FIELD_NUMBER: _ClassVar[int]
    OVERDUE_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    ESCALATED_FIELD_NUMBER: _ClassVar[int]
    PREDICATE_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_AT_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGED_AT_FIELD_NUMBER: _ClassVar[int]
    SETTLED_AT_FIELD_NUMBER: _ClassVar[int]
    BOUND_AT_FIELD_NUMBER: _ClassVar[int]
    DUE_AT_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_AT_FIELD_NUMBER: _ClassVar[int]
    READMITTED_AT_FIELD_NUMBER: _ClassVar[int]
    EXPOSURE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_FIELD_NUMBER: _ClassVar[int]
    SURFACES_FIELD_NUMBER: _ClassVar[int]
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGED_FIELD_NUMBER: _ClassVar[int]
    PRIMARY_REMOVED_FIELD_NUMBER: _ClassVar[int]
    RECONSTRUCTION_PATHS_SEVERED_FIELD_NUMBER: _ClassVar[int]
    EFFECTIVE_NON_RECOVERABILITY_FIELD_NUMBER: _ClassVar[int]
    ACCESS_PATHS_FIELD_NUMBER: _ClassVar[int]
    SUPPRESSED_FIELD_NUMBER: _ClassVar[int]
    UPSTREAM_CALLS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_CALLS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_SALT_FIELD_NUMBER: _ClassVar[int]
    id: str
    store: str
    state: str
    verdict: str
    policy_phase: str
    read_phase: str
    may_assert_erasure: bool
    may_assert_non_recallability: bool
    through: _containers.RepeatedScalarFieldContainer[str]
    missing_for_compliant: _containers.RepeatedScalarFieldContainer[str]
    overdue: bool
    held: bool
    escalated: bool
    predicate: Predicate
    tokens: _containers.RepeatedScalarFieldContainer[str]
    epochs: Epochs
    requested_at: _timestamp_pb2.Timestamp
    acknowledged_at: _timestamp_pb2.Timestamp
    settled_at: _timestamp_pb2.Timestamp
    bound_at: _timestamp_pb2.Timestamp
    due_at: _timestamp_pb2.Timestamp
    received_at: _timestamp_pb2.Timestamp
    readmitted_at: _timestamp_pb2.Timestamp
    exposure_seconds: float
    basis: str
    reference: str
    surfaces: _containers.RepeatedCompositeFieldContainer[Surface]
    lineage: Lineage
    claim: Claim
    acknowledged: bool
    primary_removed: bool
    reconstruction_paths_severed: bool
    effective_non_recoverability: bool
    access_paths: int
    suppressed: bool
    upstream_calls: int
    client_calls: int
    reason: str
    why: str
    receipt_salt: str
    def __init__(self, id: _Optional[str] = ..., store: _Optional[str] = ..., state: _Optional[str] = ..., verdict: _Optional[str] = ..., policy_phase: _Optional[str] = ..., read_phase: _Optional[str] = ..., may_assert_erasure: _Optional[bool] = ..., may_assert_non_recallability: _Optional[bool] = ..., through: _Optional[_Iterable[str]] = ..., missing_for_compliant: _Optional[_Iterable[str]] = ..., overdue: _Optional[bool] = ..., held: _Optional[bool] = ..., escalated: _Optional[bool] = ..., predicate: _Optional[_Union[Predicate, _Mapping]] = ..., tokens: _Optional[_Iterable[str]] = ..., epochs: _Optional[_Union[Epochs, _Mapping]] = ..., requested_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., acknowledged_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., settled_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., bound_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., due_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., received_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., readmitted_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., exposure_seconds: _Optional[float] = ..., basis: _Optional[str] = ..., reference: _Optional[str] = ..., surfaces: _Optional[_Iterable[_Union[Surface, _Mapping]]] = ..., lineage: _Optional[_Union[Lineage, _Mapping]] = ..., claim: _Optional[_Union[Claim, _Mapping]] = ..., acknowledged: _Optional[bool] = ..., primary_removed: _Optional[bool] = ..., reconstruction_paths_severed: _Optional[bool] = ..., effective_non_recoverability: _Optional[bool] = ..., access_paths: _Optional[int] = ..., suppressed: _Optional[bool] = ..., upstream_calls: _Optional[int] = ..., client_calls: _Optional[int] = ..., reason: _Optional[str] = ..., why: _Optional[str] = ..., receipt_salt: _Optional[str] = ...) -> None: ...

class ListErasuresRequest(_message.Message):
    __slots__ = ("state", "verdict", "subject", "tenant", "limit", "cursor")
    STATE_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    state: str
    verdict: str
    subject: str
    tenant: str
    limit: int
    cursor: str
    def __init__(self, state: _Optional[str] = ..., verdict: _Optional[str] = ..., subject: _Optional[str] = ..., tenant: _Optional[str] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListErasuresResponse(_message.Message):
    __slots__ = ("erasures", "next")
    ERASURES_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    erasures: _containers.RepeatedCompositeFieldContainer[Erasure]
    next: str
    def __init__(self, erasures: _Optional[_Iterable[_Union[Erasure, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class GetErasureRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class WatchErasureRequest(_message.Message):
    __slots__ = ("id", "until_settled")
    ID_FIELD_NUMBER: _ClassVar[int]
    UNTIL_SETTLED_FIELD_NUMBER: _ClassVar[int]
    id: str
    until_settled: bool
    def __init__(self, id: _Optional[str] = ..., until_settled: _Optional[bool] = ...) -> None: ...

class CreateErasureRequest(_message.Message):
    __slots__ = ("subject", "keys", "path", "tenant", "purposes", "aliases", "basis", "reference", "received_at", "capture")
    class CaptureEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    PURPOSES_FIELD_NUMBER: _ClassVar[int]
    ALIASES_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_AT_FIELD_NUMBER: _ClassVar[int]
    CAPTURE_FIELD_NUMBER: _ClassVar[int]
    subject: _containers.RepeatedScalarFieldContainer[str]
    keys: _containers.RepeatedScalarFieldContainer[str]
    path: str
    tenant: str
    purposes: _containers.RepeatedScalarFieldContainer[str]
    aliases: _containers.RepeatedScalarFieldContainer[str]
    basis: str
    reference: str
    received_at: _timestamp_pb2.Timestamp
    capture: _containers.ScalarMap[str, str]
    def __init__(self, subject: _Optional[_Iterable[str]] = ..., keys: _Optional[_Iterable[str]] = ..., path: _Optional[str] = ..., tenant: _Optional[str] = ..., purposes: _Optional[_Iterable[str]] = ..., aliases: _Optional[_Iterable[str]] = ..., basis: _Optional[str] = ..., reference: _Optional[str] = ..., received_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., capture: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ListEventsRequest(_message.Message):
    __slots__ = ("id", "after", "limit")
    ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    id: str
    after: int
    limit: int
    def __init__(self, id: _Optional[str] = ..., after: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("number", "type", "erasure", "at", "actor", "kind", "gate", "facts", "hash")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    ERASURE_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    GATE_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    number: int
    type: str
    erasure: str
    at: _timestamp_pb2.Timestamp
    actor: str
    kind: str
    gate: bool
    facts: _struct_pb2.Struct
    hash: str
    def __init__(self, number: _Optional[int] = ..., type: _Optional[str] = ..., erasure: _Optional[str] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., actor: _Optional[str] = ..., kind: _Optional[str] = ..., gate: _Optional[bool] = ..., facts: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., hash: _Optional[str] = ...) -> None: ...

class ListEventsResponse(_message.Message):
    __slots__ = ("events", "next")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[Event]
    next: str
    def __init__(self, events: _Optional[_Iterable[_Union[Event, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class StreamAuditRequest(_message.Message):
    __slots__ = ("after",)
    AFTER_FIELD_NUMBER: _ClassVar[int]
    after: int
    def __init__(self, after: _Optional[int] = ...) -> None: ...

class GetReceiptRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class GetReceiptResponse(_message.Message):
    __slots__ = ("receipt",)
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    receipt: _struct_pb2.Struct
    def __init__(self, receipt: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class VerifyErasureRequest(_message.Message):
    __slots__ = ("id", "reason")
    ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    id: str
    reason: str
    def __init__(self, id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class RetryErasureRequest(_message.Message):
    __slots__ = ("id", "reason")
    ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    id: str
    reason: str
    def __init__(self, id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class ReleaseErasureRequest(_message.Message):
    __slots__ = ("id", "reason")
    ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    id: str
    reason: str
    def __init__(self, id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class EscalateErasureRequest(_message.Message):
    __slots__ = ("id", "reason")
    ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    id: str
    reason: str
    def __init__(self, id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class ExtendErasureRequest(_message.Message):
    __slots__ = ("id", "reason")
    ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    id: str
    reason: str
    def __init__(self, id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class ReadmitSubjectRequest(_message.Message):
    __slots__ = ("subject", "tenant", "reason", "old_content")
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    OLD_CONTENT_FIELD_NUMBER: _ClassVar[int]
    subject: str
    tenant: str
    reason: str
    old_content: str
    def __init__(self, subject: _Optional[str] = ..., tenant: _Optional[str] = ..., reason: _Optional[str] = ..., old_content: _Optional[str] = ...) -> None: ...

class ReadmitSubjectResponse(_message.Message):
    __slots__ = ("erasures",)
    ERASURES_FIELD_NUMBER: _ClassVar[int]
    erasures: _containers.RepeatedCompositeFieldContainer[Erasure]
    def __init__(self, erasures: _Optional[_Iterable[_Union[Erasure, _Mapping]]] = ...) -> None: ...

class SignalRequest(_message.Message):
    __slots__ = ("kind", "epoch", "incarnation", "scope")
    KIND_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    kind: str
    epoch: int
    incarnation: str
    scope: _struct_pb2.Struct
    def __init__(self, kind: _Optional[str] = ..., epoch: _Optional[int] = ..., incarnation: _Optional[str] = ..., scope: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class SignalResponse(_message.Message):
    __slots__ = ("erasures",)
    ERASURES_FIELD_NUMBER: _ClassVar[int]
    erasures: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, erasures: _Optional[_Iterable[str]] = ...) -> None: ...

class ListHoldsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Hold(_message.Message):
    __slots__ = ("id", "predicate", "exception", "reason", "actor", "placed_at", "until", "waiting")
    ID_FIELD_NUMBER: _ClassVar[int]
    PREDICATE_FIELD_NUMBER: _ClassVar[int]
    EXCEPTION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    PLACED_AT_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    id: str
    predicate: Predicate
    exception: str
    reason: str
    actor: str
    placed_at: _timestamp_pb2.Timestamp
    until: _timestamp_pb2.Timestamp
    waiting: int
    def __init__(self, id: _Optional[str] = ..., predicate: _Optional[_Union[Predicate, _Mapping]] = ..., exception: _Optional[str] = ..., reason: _Optional[str] = ..., actor: _Optional[str] = ..., placed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., waiting: _Optional[int] = ...) -> None: ...

class ListHoldsResponse(_message.Message):
    __slots__ = ("holds",)
    HOLDS_FIELD_NUMBER: _ClassVar[int]
    holds: _containers.RepeatedCompositeFieldContainer[Hold]
    def __init__(self, holds: _Optional[_Iterable[_Union[Hold, _Mapping]]] = ...) -> None: ...

class CreateHoldRequest(_message.Message):
    __slots__ = ("subject", "keys", "path", "tenant", "purposes", "exception", "until", "reason")
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    PURPOSES_FIELD_NUMBER: _ClassVar[int]
    EXCEPTION_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    subject: _containers.RepeatedScalarFieldContainer[str]
    keys: _containers.RepeatedScalarFieldContainer[str]
    path: _containers.RepeatedScalarFieldContainer[str]
    tenant: str
    purposes: _containers.RepeatedScalarFieldContainer[str]
    exception: str
    until: _timestamp_pb2.Timestamp
    reason: str
    def __init__(self, subject: _Optional[_Iterable[str]] = ..., keys: _Optional[_Iterable[str]] = ..., path: _Optional[_Iterable[str]] = ..., tenant: _Optional[str] = ..., purposes: _Optional[_Iterable[str]] = ..., exception: _Optional[str] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., reason: _Optional[str] = ...) -> None: ...

class LiftHoldRequest(_message.Message):
    __slots__ = ("id", "reason")
    ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    id: str
    reason: str
    def __init__(self, id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class LiftHoldResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListOverridesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Override(_message.Message):
    __slots__ = ("id", "predicate", "effect", "reason", "actor", "begun_at", "until", "active")
    ID_FIELD_NUMBER: _ClassVar[int]
    PREDICATE_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    BEGUN_AT_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    id: str
    predicate: Predicate
    effect: str
    reason: str
    actor: str
    begun_at: _timestamp_pb2.Timestamp
    until: _timestamp_pb2.Timestamp
    active: bool
    def __init__(self, id: _Optional[str] = ..., predicate: _Optional[_Union[Predicate, _Mapping]] = ..., effect: _Optional[str] = ..., reason: _Optional[str] = ..., actor: _Optional[str] = ..., begun_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., active: _Optional[bool] = ...) -> None: ...

class ListOverridesResponse(_message.Message):
    __slots__ = ("overrides",)
    OVERRIDES_FIELD_NUMBER: _ClassVar[int]
    overrides: _containers.RepeatedCompositeFieldContainer[Override]
    def __init__(self, overrides: _Optional[_Iterable[_Union[Override, _Mapping]]] = ...) -> None: ...

class CreateOverrideRequest(_message.Message):
    __slots__ = ("effect", "lasts", "reason", "tenant")
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    LASTS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    effect: str
    lasts: _duration_pb2.Duration
    reason: str
    tenant: str
    def __init__(self, effect: _Optional[str] = ..., lasts: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., reason: _Optional[str] = ..., tenant: _Optional[str] = ...) -> None: ...

class EndOverrideRequest(_message.Message):
    __slots__ = ("id", "reason")
    ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    id: str
    reason: str
    def __init__(self, id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class EndOverrideResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListQuarantinesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Quarantine(_message.Message):
    __slots__ = ("id", "predicate", "reason", "actor", "placed_at")
    ID_FIELD_NUMBER: _ClassVar[int]
    PREDICATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    PLACED_AT_FIELD_NUMBER: _ClassVar[int]
    id: str
    predicate: Predicate
    reason: str
    actor: str
    placed_at: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., predicate: _Optional[_Union[Predicate, _Mapping]] = ..., reason: _Optional[str] = ..., actor: _Optional[str] = ..., placed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ListQuarantinesResponse(_message.Message):
    __slots__ = ("quarantines",)
    QUARANTINES_FIELD_NUMBER: _ClassVar[int]
    quarantines: _containers.RepeatedCompositeFieldContainer[Quarantine]
    def __init__(self, quarantines: _Optional[_Iterable[_Union[Quarantine, _Mapping]]] = ...) -> None: ...

class CreateQuarantineRequest(_message.Message):
    __slots__ = ("subject", "keys", "path", "tenant", "purposes", "reason")
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    PURPOSES_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    subject: _containers.RepeatedScalarFieldContainer[str]
    keys: _containers.RepeatedScalarFieldContainer[str]
    path: _containers.RepeatedScalarFieldContainer[str]
    tenant: str
    purposes: _containers.RepeatedScalarFieldContainer[str]
    reason: str
    def __init__(self, subject: _Optional[_Iterable[str]] = ..., keys: _Optional[_Iterable[str]] = ..., path: _Optional[_Iterable[str]] = ..., tenant: _Optional[str] = ..., purposes: _Optional[_Iterable[str]] = ..., reason: _Optional[str] = ...) -> None: ...

class LiftQuarantineRequest(_message.Message):
    __slots__ = ("id", "reason")
    ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    id: str
    reason: str
    def __init__(self, id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class LiftQuarantineResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListUnmappedRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class UnmappedRoute(_message.Message):
    __slots__ = ("shape", "count")
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    shape: str
    count: int
    def __init__(self, shape: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...

class ListUnmappedResponse(_message.Message):
    __slots__ = ("routes",)
    ROUTES_FIELD_NUMBER: _ClassVar[int]
    routes: _containers.RepeatedCompositeFieldContainer[UnmappedRoute]
    def __init__(self, routes: _Optional[_Iterable[_Union[UnmappedRoute, _Mapping]]] = ...) -> None: ...

class ListDecisionsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DecisionCase(_message.Message):
    __slots__ = ("erasure", "state", "subject", "write")
    ERASURE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    WRITE_FIELD_NUMBER: _ClassVar[int]
    erasure: str
    state: str
    subject: str
    write: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, erasure: _Optional[str] = ..., state: _Optional[str] = ..., subject: _Optional[str] = ..., write: _Optional[_Iterable[str]] = ...) -> None: ...

class DecisionCount(_message.Message):
    __slots__ = ("operation", "route", "tenant", "principal", "purpose", "failure", "cases", "rule", "effect", "mode", "overridden", "count")
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    ROUTE_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    CASES_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    OVERRIDDEN_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    operation: str
    route: str
    tenant: _containers.RepeatedScalarFieldContainer[str]
    principal: str
    purpose: _containers.RepeatedScalarFieldContainer[str]
    failure: str
    cases: _containers.RepeatedCompositeFieldContainer[DecisionCase]
    rule: str
    effect: str
    mode: str
    overridden: bool
    count: int
    def __init__(self, operation: _Optional[str] = ..., route: _Optional[str] = ..., tenant: _Optional[_Iterable[str]] = ..., principal: _Optional[str] = ..., purpose: _Optional[_Iterable[str]] = ..., failure: _Optional[str] = ..., cases: _Optional[_Iterable[_Union[DecisionCase, _Mapping]]] = ..., rule: _Optional[str] = ..., effect: _Optional[str] = ..., mode: _Optional[str] = ..., overridden: _Optional[bool] = ..., count: _Optional[int] = ...) -> None: ...

class UnreadableField(_message.Message):
    __slots__ = ("route", "field", "count")
    ROUTE_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    route: str
    field: str
    count: int
    def __init__(self, route: _Optional[str] = ..., field: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...

class FaultyRequests(_message.Message):
    __slots__ = ("problem", "count")
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    problem: str
    count: int
    def __init__(self, problem: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...

class ListDecisionsResponse(_message.Message):
    __slots__ = ("since", "policy", "calls", "unreadable", "faulty", "unmapped", "left_out")
    SINCE_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    UNREADABLE_FIELD_NUMBER: _ClassVar[int]
    FAULTY_FIELD_NUMBER: _ClassVar[int]
    UNMAPPED_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    since: _timestamp_pb2.Timestamp
    policy: str
    calls: _containers.RepeatedCompositeFieldContainer[DecisionCount]
    unreadable: _containers.RepeatedCompositeFieldContainer[UnreadableField]
    faulty: _containers.RepeatedCompositeFieldContainer[FaultyRequests]
    unmapped: _containers.RepeatedCompositeFieldContainer[UnmappedRoute]
    left_out: int
    def __init__(self, since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., policy: _Optional[str] = ..., calls: _Optional[_Iterable[_Union[DecisionCount, _Mapping]]] = ..., unreadable: _Optional[_Iterable[_Union[UnreadableField, _Mapping]]] = ..., faulty: _Optional[_Iterable[_Union[FaultyRequests, _Mapping]]] = ..., unmapped: _Optional[_Iterable[_Union[UnmappedRoute, _Mapping]]] = ..., left_out: _Optional[int] = ...) -> None: ...
