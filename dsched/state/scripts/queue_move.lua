-- queue_move: put pods from one place into another, each only if it still is where the caller thinks.
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
-- ARGV[2] moves  msgpack  [[key, uid, from, to, score, place, order, [field, value, …]], …]; from "" takes in a new pod
-- RETURNS the numbers (from 0) of the moves that were not made: the pod is elsewhere, or another pod has its name
-- INCLUDE fence
-- INCLUDE places
if not fenced(KEYS[1], ARGV[1]) then
  return stale(ARGV[1])
end
local refused = {}
for number, move in ipairs(cmsgpack.unpack(ARGV[2])) do
  local key, uid, from, to, score, place, order, fields = unpack(move)
  local record = KEYS[8] .. key
  local known = redis.call("HMGET", record, "uid", "queue", "place")
  if from == "" and known[1] and known[1] ~= uid then
    leave(key, known[2], known[3])
    redis.call("DEL", record)
    known = { false, false, false }
  end
  if (from == "" and not known[1]) or (known[1] == uid and known[2] == from) then
    if known[1] then
      leave(key, from, known[3])
    end
    enter(key, to, score, place)
    redis.call("HSET", record, "uid", uid, "queue", to, "place", place, "order", order, unpack(fields))
  else
    refused[#refused + 1] = number - 1
  end
end
return refused
