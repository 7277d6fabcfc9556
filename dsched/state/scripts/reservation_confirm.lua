-- reservation_confirm: end reservations whose pods are bound; the node keeps the charge, claims in the cluster say by now
-- who has which devices, the pod is no longer pending.
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
-- RETURNS per pod 1 | 0 no reservation stands
-- INCLUDE fence
-- INCLUDE places
-- INCLUDE in_bulk
-- INCLUDE charges
-- INCLUDE devices
if not fenced(KEYS[1], ARGV[1]) then
  return stale(ARGV[1])
end
local pods, uids = cmsgpack.unpack(ARGV[2]), {}
for number, pod in ipairs(pods) do
  uids[number] = pod[2]
end
local held = read_in_bulk(KEYS[9], uids)
local confirmed, ended, done, records = {}, {}, {}, {}
for number, pod in ipairs(pods) do
  local key, uid = pod[1], pod[2]
  confirmed[number] = held[number] and not done[uid] and 1 or 0
  if confirmed[number] == 1 then
    done[uid] = true
    ended[#ended + 1] = uid
    local known = redis.call("HMGET", KEYS[8] .. key, "uid", "queue", "place")
    if known[1] == uid then
      leave(key, known[2], known[3])
      records[#records + 1] = KEYS[8] .. key
    end
  end
end
for number, holds in pairs(read_in_bulk(KEYS[11], ended)) do
  if holds then
    give_back_devices(KEYS[11], KEYS[12], ended[number])
  end
end
in_bulk(records, function(...)
  redis.call("DEL", ...)
end)
in_bulk(ended, function(...)
  redis.call("HDEL", KEYS[9], ...)
end)
return confirmed
