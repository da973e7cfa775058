"""What runs inside Valkey or Redis: a few Lua scripts, each of which is one indivisible step.

`KEYS[1]` is the prefix of all keys of one ledger, in braces so that a cluster keeps them on one server:

    PREFIX:ledger    hash    incarnation, number, hash, epoch, keys, schema, floor, life
    PREFIX:events    stream  one entry an event, its ID is its number
    PREFIX:of:ID     list    the numbers of an erasure's events
    PREFIX:newest    hash    the last of them
    PREFIX:marks:ID  hash    the packed marks that came with each event
    PREFIX:marked    set     the erasures that have marks
    PREFIX:secrets:ID hash   sealed bytes by name
    PREFIX:replicas  hash    session -> beat|number|seconds|undrained
    PREFIX:work      hash    erasure -> generation|session
    PREFIX:news      channel hints
"""

from __future__ import annotations

from typing import Final

SCHEMA: Final = 1
"""The newest schema that this code reads and writes."""

MAKE: Final = """
if redis.call('EXISTS', KEYS[1]..':ledger') == 1 then return 0 end
if redis.call('EXISTS', KEYS[1]..':events', KEYS[1]..':newest', KEYS[1]..':marked') > 0 then return -1 end
redis.call('HSET', KEYS[1]..':ledger', 'incarnation', ARGV[1], 'number', 0, 'hash', ARGV[2], 'epoch', 0,
  'keys', '[]', 'schema', ARGV[3], 'floor', ARGV[3], 'life', ARGV[4])
return 1
"""

STANDING: Final = """
local found = {redis.call('HMGET', KEYS[1]..':ledger',
  'incarnation', 'number', 'hash', 'epoch', 'keys', 'schema', 'floor'), '0'}
local last = redis.call('XREVRANGE', KEYS[1]..':events', '+', '-', 'COUNT', 1)
if last[1] then found[2] = last[1][1] end
if #ARGV > 0 then found[3] = redis.call('HMGET', KEYS[1]..':newest', unpack(ARGV)) end
return found
"""

WRITE: Final = """
local p, at = KEYS[1], 0
local function take() at = at + 1; return ARGV[at] end
local session, before, hash = take(), take(), take()
local now = redis.call('HMGET', p..':ledger', 'number', 'hash')
if now[1] ~= before or now[2] ~= hash then return 'moved' end
if session ~= '' and redis.call('HEXISTS', p..':replicas', session) == 0 then return 'unlisted' end
for _ = 1, tonumber(take()) do
  local erasure, held = take(), take()
  if redis.call('HGET', p..':work', erasure) ~= held..'|'..session then return 'fenced' end
end
for _ = 1, tonumber(take()) do redis.call('HSET', p..':work', take(), '1|'..session) end
for _ = 1, tonumber(take()) do
  local number, erasure = take(), take()
  redis.call('XADD', p..':events', number..'-0', 't', take(), 'e', erasure, 'a', take(), 'w', take(),
    'f', take(), 'g', take(), 'h', take())
  redis.call('RPUSH', p..':of:'..erasure, number)
  redis.call('HSET', p..':newest', erasure, number)
end
for _ = 1, tonumber(take()) do
  local erasure = take()
  redis.call('DEL', p..':marks:'..erasure)
  redis.call('SREM', p..':marked', erasure)
end
for _ = 1, tonumber(take()) do
  local erasure = take()
  redis.call('HSET', p..':marks:'..erasure, take(), take())
  redis.call('SADD', p..':marked', erasure)
end
for _ = 1, tonumber(take()) do
  local erasure = take()
  redis.call('HSET', p..':secrets:'..erasure, take(), take())
end
local number = take()
redis.call('HSET', p..':ledger', 'number', number, 'hash', take(), 'epoch', take())
redis.call('PUBLISH', p..':news', 'e')
return ''
"""

BIND: Final = """
local now = redis.call('HMGET', KEYS[1]..':ledger', 'number', 'hash', 'keys')
if now[1] ~= '0' or now[2] ~= ARGV[1] or now[3] ~= '[]' then return 0 end
redis.call('HSET', KEYS[1]..':ledger', 'keys', ARGV[2], 'hash', ARGV[3])
return 1
"""

_MUSTER: Final = """
local last = redis.call('XREVRANGE', KEYS[1]..':events', '+', '-', 'COUNT', 1)
return {redis.call('HMGET', KEYS[1]..':ledger',
  'incarnation', 'number', 'hash', 'epoch', 'keys', 'schema', 'floor'), last[1] and last[1][1] or '0', false,
  redis.call('HGETALL', KEYS[1]..':replicas'),
  string.match(redis.call('INFO', 'server'), 'run_id:(%w+)'), redis.call('HGET', KEYS[1]..':ledger', 'life')}
"""

JOIN: Final = (
    """
redis.call('HSET', KEYS[1]..':replicas', ARGV[1], '1|0|'..ARGV[2]..'|')
redis.call('PUBLISH', KEYS[1]..':news', 'r')
"""
    + _MUSTER
)

RENEW: Final = (
    """
local was = redis.call('HGET', KEYS[1]..':replicas', ARGV[1])
if not was then return {} end
local beat, number, seconds, undrained = string.match(was, '^(%d+)|(%d+)|([^|]+)|(.*)$')
redis.call('HSET', KEYS[1]..':replicas', ARGV[1],
  (tonumber(beat) + 1)..'|'..ARGV[2]..'|'..seconds..'|'..ARGV[3])
if number ~= ARGV[2] or undrained ~= ARGV[3] then redis.call('PUBLISH', KEYS[1]..':news', 'r') end
"""
    + _MUSTER
)

EXPEL: Final = """
local was = redis.call('HGET', KEYS[1]..':replicas', ARGV[1])
if was and string.match(was, '^(%d+)|') ~= ARGV[2] then return 0 end
redis.call('HDEL', KEYS[1]..':replicas', ARGV[1])
redis.call('PUBLISH', KEYS[1]..':news', 'r')
return 1
"""

LEAVE: Final = """
redis.call('HDEL', KEYS[1]..':replicas', ARGV[1])
redis.call('PUBLISH', KEYS[1]..':news', 'r')
return 1
"""

CLAIM: Final = """
if redis.call('HEXISTS', KEYS[1]..':replicas', ARGV[1]) == 0 then return -1 end
local was, generation = redis.call('HGET', KEYS[1]..':work', ARGV[2]), 0
if was then
  local held, session = string.match(was, '^(%d+)|(.*)$')
  generation = tonumber(held)
  if session == ARGV[1] then return generation end
  if redis.call('HEXISTS', KEYS[1]..':replicas', session) == 1 then return 0 end
end
redis.call('HSET', KEYS[1]..':work', ARGV[2], (generation + 1)..'|'..ARGV[1])
return generation + 1
"""

RELEASE: Final = """
local was = redis.call('HGET', KEYS[1]..':work', ARGV[2])
if was and string.match(was, '^%d+|(.*)$') == ARGV[1] then redis.call('HDEL', KEYS[1]..':work', ARGV[2]) end
return 1
"""
