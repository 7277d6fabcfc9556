-- queue_flush: move pods whose backoff is over to the active queue.
-- KEYS[1] leader:epoch         string  the present epoch
-- KEYS[2] queue:active         zset    "PLACE NS/NAME" by the order number of QueueSort
-- KEYS[3] queue:backoff        zset    NS/NAME by when the backoff ends, ms
-- KEYS[4] queue:unschedulable  zset    NS/NAME by when it was put there, ms
-- KEYS[5] queue:gated          zset    NS/NAME by when it was put there, ms
-- KEYS[6] queue:inflight       hash    NS/NAME to "EPOCH BATCH"
-- KEYS[7] queue:waiting        zset    NS/NAME by the deadline of Permit, ms
-- KEYS[8] pod:                 prefix  of the pods' records, hashes pod:NS/NAME
-- KEYS[9] queue:group          zset    "GROUP NS/NAME" of pods beside their pod group, by when they were queued, microseconds
-- ARGV[1] epoch   int  the caller's epoch
-- ARGV[2] now_ms  int  the caller's clock
-- ARGV[3] count   int  pods at most
-- RETURNS keys of the pods moved
-- INCLUDE fence
if not fenced(KEYS[1], ARGV[1]) then
  return stale(ARGV[1])
end
local due = redis.call("ZRANGEBYSCORE", KEYS[3], "-inf", ARGV[2], "LIMIT", 0, ARGV[3])
for _, key in ipairs(due) do
  local known = redis.call("HMGET", KEYS[8] .. key, "place", "order")
  redis.call("ZREM", KEYS[3], key)
  if known[1] and tonumber(known[2]) then -- else it is somebody else's doing: there is no such pod
    redis.call("ZADD", KEYS[2], known[2], known[1] .. " " .. key)
    redis.call("HSET", KEYS[8] .. key, "queue", "active")
  end
end
return due
