-- queue_pop: move the head of the active queue to in flight; when it is empty, the first pods in backoff instead.
-- KEYS[1] leader:epoch         string  the present epoch
-- KEYS[2] queue:active         zset    "PLACE NS/NAME" by the order number of QueueSort
-- KEYS[3] queue:backoff        zset    NS/NAME by when the backoff ends, ms
-- KEYS[4] queue:unschedulable  zset    NS/NAME by when it was put there, ms
-- KEYS[5] queue:gated          zset    NS/NAME by when it was put there, ms
-- KEYS[6] queue:inflight       hash    NS/NAME to "EPOCH BATCH"
-- KEYS[7] queue:waiting        zset    NS/NAME by the deadline of Permit, ms
-- KEYS[8] pod:                 prefix  of the pods' records, hashes pod:NS/NAME
-- ARGV[1] epoch         int   the caller's epoch
-- ARGV[2] batch         text  names the batch
-- ARGV[3] count         int   pods at most
-- ARGV[4] now_ms        int   the caller's clock
-- ARGV[5] from_backoff  0|1   whether an empty active queue is filled from backoff
-- RETURNS [key, uid, attempts, …] flat, in queue order; attempts count this one
-- INCLUDE fence
if not fenced(KEYS[1], ARGV[1]) then
  return stale(ARGV[1])
end

-- Pods in backoff, those after errors left out. Pauses that end within the same second count as equal and leave the
-- order to the active queue's. Source: backoff_queue.go lessBackoffCompletedWithPriority.
local function first_in_backoff(count)
  local found, from = {}, "-inf"
  while #found < count do
    local first = redis.call("ZRANGEBYSCORE", KEYS[3], from, "+inf", "WITHSCORES", "LIMIT", 0, 1)
    if #first == 0 then
      break
    end
    local next_second = string.format("%.0f", (math.floor(first[2] / 1000) + 1) * 1000)
    local window = {}
    for _, key in ipairs(redis.call("ZRANGEBYSCORE", KEYS[3], from, "(" .. next_second)) do
      local known = redis.call("HMGET", KEYS[8] .. key, "error", "order", "place")
      if known[1] ~= "1" then
        window[#window + 1] = { key = key, order = tonumber(known[2] or "0"), member = (known[3] or "") .. " " .. key }
      end
    end
    table.sort(window, function(one, other)
      return one.order < other.order or (one.order == other.order and one.member < other.member)
    end)
    for at = 1, math.min(#window, count - #found) do
      found[#found + 1] = window[at].key
    end
    from = next_second
  end
  return found
end

local popped = {}
local function take(key)
  local record = KEYS[8] .. key
  local known = redis.call("HMGET", record, "uid", "attempts", "first_ms")
  local attempts = tonumber(known[2] or "0") + 1
  redis.call("HSET", record, "queue", "inflight", "attempts", attempts, "last_ms", ARGV[4],
    "first_ms", known[3] or ARGV[4])
  redis.call("HSET", KEYS[6], key, ARGV[1] .. " " .. ARGV[2])
  local at = #popped
  popped[at + 1] = key
  popped[at + 2] = known[1]
  popped[at + 3] = attempts
end
local members = redis.call("ZPOPMIN", KEYS[2], ARGV[3])
for at = 1, #members, 2 do
  take(string.match(members[at], "[^ ]+$"))
end
if #members == 0 and ARGV[5] == "1" then
  for _, key in ipairs(first_in_backoff(tonumber(ARGV[3]))) do
    redis.call("ZREM", KEYS[3], key)
    take(key)
  end
end
return popped
