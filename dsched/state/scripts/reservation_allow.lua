-- reservation_allow: Permit no longer holds these pods back; they are ready to be bound.
-- KEYS[1] leader:epoch         string  the present epoch
-- KEYS[2] queue:active         zset    "PLACE NS/NAME" by the order number of QueueSort
-- KEYS[3] queue:backoff        zset    NS/NAME by when the backoff ends, ms
-- KEYS[4] queue:unschedulable  zset    NS/NAME by when it was put there, ms
-- KEYS[5] queue:gated          zset    NS/NAME by when it was put there, ms
-- KEYS[6] queue:inflight       hash    NS/NAME to "EPOCH BATCH"
-- KEYS[7] queue:waiting        zset    NS/NAME by the deadline of Permit, ms
-- KEYS[8] pod:                 prefix  of the pods' records, hashes pod:NS/NAME
-- KEYS[9] reservations         hash    uid to "NS/NAME NODE EPOCH STATE ATTEMPT SINCE_MS"
-- KEYS[10] node:               prefix  of the nodes' usage, hashes node:NAME
-- KEYS[11] devices            hash    uid to {holder: {device, share or counter: amount}}, JSON
-- KEYS[12] devices:used       hash    device, share or counter to how much reserved pods take of it
-- KEYS[13] queue:group         zset    "GROUP NS/NAME" of pods beside their pod group, by when they were queued, microseconds
-- ARGV[1] epoch  int      the caller's epoch
-- ARGV[2] pods   msgpack  [[key, uid], …]
-- RETURNS per pod 1 | 0 it is not waiting
-- INCLUDE fence
-- INCLUDE places
if not fenced(KEYS[1], ARGV[1]) then
  return stale(ARGV[1])
end
local allowed = {}
for number, pod in ipairs(cmsgpack.unpack(ARGV[2])) do
  local key, uid = pod[1], pod[2]
  local standing = redis.call("HGET", KEYS[9], uid)
  local named = redis.call("HGET", KEYS[8] .. key, "uid") == uid
  if standing and named and redis.call("ZREM", KEYS[7], key) == 1 then
    redis.call("HSET", KEYS[9], uid, (string.gsub(standing, "^(%S+ %S+ %S+) waiting", "%1 reserved")))
    redis.call("HSET", KEYS[8] .. key, "queue", "reserved")
    allowed[number] = 1
  else
    allowed[number] = 0
  end
end
return allowed
