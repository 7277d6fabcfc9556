-- queue_remove: forget pods that are no longer pending, wherever they stand; reservations are not touched.
-- KEYS[1] leader:epoch         string  the present epoch
-- KEYS[2] queue:active         zset    "PLACE NS/NAME" by the order number of QueueSort
-- KEYS[3] queue:backoff        zset    NS/NAME by when the backoff ends, ms
-- KEYS[4] queue:unschedulable  zset    NS/NAME by when it was put there, ms
-- KEYS[5] queue:gated          zset    NS/NAME by when it was put there, ms
-- KEYS[6] queue:inflight       hash    NS/NAME to "EPOCH BATCH"
-- KEYS[7] queue:waiting        zset    NS/NAME by the deadline of Permit, ms
-- KEYS[8] pod:                 prefix  of the pods' records, hashes pod:NS/NAME
-- KEYS[9] queue:group          zset    "GROUP NS/NAME" of pods beside their pod group, by when they were queued, microseconds
-- ARGV[1] epoch  int      the caller's epoch
-- ARGV[2] pods   msgpack  [[key, uid], …]
-- RETURNS per pod the queue it stood in | "" there is no such pod, or another one has its name
-- INCLUDE fence
-- INCLUDE places
if not fenced(KEYS[1], ARGV[1]) then
  return stale(ARGV[1])
end
local stood = {}
for number, pod in ipairs(cmsgpack.unpack(ARGV[2])) do
  local key, uid = pod[1], pod[2]
  local known = redis.call("HMGET", KEYS[8] .. key, "uid", "queue", "place")
  if known[1] == uid then
    leave(key, known[2], known[3])
    redis.call("DEL", KEYS[8] .. key)
    stood[number] = known[2]
  else
    stood[number] = ""
  end
end
return stood
