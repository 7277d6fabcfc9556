-- reservation_release: end reservations without a bind; their devices are free, each pod goes to a queue, or is forgotten when it is gone.
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
-- KEYS[13] intake              hash    settled, which it is no longer: what is given back may help others
-- KEYS[14] queue:group         zset    "GROUP NS/NAME" of pods beside their pod group, by when they were queued, microseconds
-- ARGV[1] epoch     int      the caller's epoch
-- ARGV[2] releases  msgpack  [[key, uid, node, {resource: amount}, to, score, place, order, [field, value, …]], …];
--                            to "" forgets the pod
-- RETURNS per pod 1 | 0 no such reservation stands
-- INCLUDE fence
-- INCLUDE places
-- INCLUDE in_bulk
-- INCLUDE charges
-- INCLUDE devices
if not fenced(KEYS[1], ARGV[1]) then
  return stale(ARGV[1])
end
redis.call("HDEL", KEYS[13], "settled")
local released = {}
for number, item in ipairs(cmsgpack.unpack(ARGV[2])) do
  local key, uid, node, amounts, to, score, place, order, fields = unpack(item)
  local standing = redis.call("HGET", KEYS[9], uid)
  local held = standing and { string.match(standing, "^(%S+) (%S+)") } or {}
  if held[1] == key and held[2] == node then
    redis.call("HDEL", KEYS[9], uid)
    if redis.call("EXISTS", KEYS[10] .. node) == 1 then
      charge(KEYS[10] .. node, amounts, "-")
    end
    give_back_devices(KEYS[11], KEYS[12], uid)
    local record = KEYS[8] .. key
    local known = redis.call("HMGET", record, "uid", "queue", "place")
    if known[1] == uid then
      leave(key, known[2], known[3])
      if to == "" then
        redis.call("DEL", record)
      else
        enter(key, to, score, place)
        redis.call("HDEL", record, "node")
        redis.call("HSET", record, "queue", to, "place", place, "order", order, unpack(fields))
      end
    end
    released[number] = 1
  else
    released[number] = 0
  end
end
return released
