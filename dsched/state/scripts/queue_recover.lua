-- queue_recover: put pods that an earlier leader had in flight back to active, those of a pod group beside it; attempts
-- and times are kept. How often a leader was lost with a pod in flight is counted in its record, for that pod may be why.
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
-- ARGV[2] before  int  the epoch under which the caller itself led last and lives still; 0 when it did not
-- ARGV[3] cursor  int  0 to begin, then what the last call returned
-- ARGV[4] count   int  about how many pods
-- RETURNS {cursor, 0 at the end; number of pods put back}
-- INCLUDE fence
if not fenced(KEYS[1], ARGV[1]) then
  return stale(ARGV[1])
end
local found = redis.call("HSCAN", KEYS[6], ARGV[3], "COUNT", ARGV[4])
local flying = found[2]
for at = 1, #flying, 2 do
  local key, mine = flying[at], string.match(flying[at + 1], "^%d+") == ARGV[2]
  local known = redis.call("HMGET", KEYS[8] .. key, "place", "order", "group")
  if known[1] and tonumber(known[2]) then
    if known[3] then
      redis.call("ZADD", KEYS[9], known[2], known[3] .. " " .. key)
      redis.call("HSET", KEYS[8] .. key, "queue", "group", "place", known[3])
    else
      redis.call("ZADD", KEYS[2], known[2], known[1] .. " " .. key)
      redis.call("HSET", KEYS[8] .. key, "queue", "active")
    end
    if not mine and string.match(redis.call("HGET", KEYS[8] .. key, "crashes") or "0", "^%d%d?%d?%d?$") then
      redis.call("HINCRBY", KEYS[8] .. key, "crashes", 1)
    end
  end
  redis.call("HDEL", KEYS[6], key)
end
return { tonumber(found[1]), #flying / 2 }
