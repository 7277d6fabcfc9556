-- queue_pop: move the head of the active queue to in flight; when it is empty, the first pods in backoff instead.
-- KEYS[1] leader:epoch    string  the present epoch
-- KEYS[2] queue:active    zset    "PLACE NS/NAME" by the order number of QueueSort
-- KEYS[3] queue:backoff   zset    NS/NAME by when the backoff ends, ms
-- KEYS[4] queue:inflight  hash    NS/NAME to "EPOCH BATCH"
-- KEYS[5] pod:            prefix  of the pods' records, hashes pod:NS/NAME
-- KEYS[6] control:paused  hash    a profile, or * for all of them, to when and why it was paused
-- KEYS[7] intake          hash    settled, which it is no longer once a pod is in flight
-- ARGV[1] epoch         int   the caller's epoch
-- ARGV[2] batch         text  names the batch
-- ARGV[3] count         int   pods at most
-- ARGV[4] now_ms        int   the caller's clock
-- ARGV[5] from_backoff  0|1   whether an empty active queue is filled from backoff
-- ARGV[6] passed  msgpack  [what was paused, score, member] up to where all active pods were paused, or []
-- ARGV[7] wanted  msgpack  members of the active queue to move, in this order, instead of its head; or []
-- RETURNS [passed, score, member, more, key, uid, attempts, …]: what to call the next time with, or what is paused where
--   members are wanted; "1" where no pod was found among those that were looked at, and there are more; the pods in order
-- INCLUDE fence
-- INCLUDE in_bulk
if not fenced(KEYS[1], ARGV[1]) then
  return stale(ARGV[1])
end

-- Looked at here and nowhere else: from the moment that somebody pauses on, no pod comes in flight any more.
local profiles, paused = redis.call("HKEYS", KEYS[6]), {}
for _, profile in ipairs(profiles) do
  paused[profile] = true
end
local wanted = cmsgpack.unpack(ARGV[7])
if paused["*"] then
  return { #wanted > 0 and "*" or "", "", "", "" }
end
local signature = table.concat(profiles, "\n")
local popped = { "", "", "", "" }
local LOOKED_AT = 2000 -- pods at most, be they popped or not

-- Pods in backoff, those after errors left out. Pauses that end within the same second count as equal and leave the
-- order to the active queue's. Source: backoff_queue.go lessBackoffCompletedWithPriority. Where too many end within one
-- second to say which is first, their pauses last until then: after that the active queue has them in order.
local function first_in_backoff(count)
  local found, from, left = {}, "-inf", LOOKED_AT
  while #found < count do
    local first = redis.call("ZRANGEBYSCORE", KEYS[3], from, "+inf", "WITHSCORES", "LIMIT", 0, 1)
    if #first == 0 then
      break
    end
    if math.abs(first[2]) > 1e15 then -- somebody else's doing; seconds are not told apart up there
      break
    end
    local next_second = string.format("%.0f", (math.floor(first[2] / 1000) + 1) * 1000)
    local window = {}
    local keys = redis.call("ZRANGEBYSCORE", KEYS[3], from, "(" .. next_second, "LIMIT", 0, left + 1)
    left = left - #keys
    if left < 0 then
      break
    end
    for _, key in ipairs(keys) do
      local known = redis.call("HMGET", KEYS[5] .. key, "error", "order", "place", "profile")
      if known[1] ~= "1" and not paused[known[4]] then
        window[#window + 1] = { key = key, order = tonumber(known[2]) or 0, member = (known[3] or "") .. " " .. key }
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

local function key_of(member)
  return string.match(member, "[^ ]+$") or ""
end

-- Those of the members that are wanted that stand in the active queue, taken out of it; not those of paused profiles.
local function first_wanted(wanted)
  local found = {}
  popped[1] = signature
  for _, member in ipairs(wanted) do
    local held_back = signature ~= "" and paused[redis.call("HGET", KEYS[5] .. key_of(member), "profile")]
    if not held_back and redis.call("ZREM", KEYS[2], member) == 1 then
      found[#found + 1] = member
    end
  end
  return found
end

-- How many members stand before a place in the active queue or in it; 0 when nothing is known of the place.
local function up_to(score, member)
  local added = redis.call("ZADD", KEYS[2], "NX", score, member) == 1
  local known = added or redis.call("ZSCORE", KEYS[2], member) == score
  local rank = known and redis.call("ZRANK", KEYS[2], member) or 0
  if added then
    redis.call("ZREM", KEYS[2], member)
  end
  return (known and not added) and rank + 1 or rank
end

-- The first members of the active queue, taken out of it; those of paused profiles stay where they are. Where the last
-- call has left off is not looked at again, so that a long queue of a paused profile is walked once.
local function first_active(count)
  local found = {}
  if signature == "" then
    local members = redis.call("ZPOPMIN", KEYS[2], count)
    for at = 1, #members, 2 do
      found[#found + 1] = members[at]
    end
    return found
  end
  local passed = cmsgpack.unpack(ARGV[6])
  local from, window = passed[1] == signature and up_to(passed[2], passed[3]) or 0, 500
  local last, left = false, LOOKED_AT
  repeat
    local members = redis.call("ZRANGE", KEYS[2], from, from + window - 1)
    for _, member in ipairs(members) do
      if #found == tonumber(count) then
        break
      end
      last = member
      if not paused[redis.call("HGET", KEYS[5] .. key_of(member), "profile")] then
        found[#found + 1] = member
      end
    end
    from = from + window
    left = left - #members
    popped[4] = (#members == window and #found == 0 and left <= 0) and "1" or ""
  until #members < window or #found == tonumber(count) or left <= 0
  if last then
    popped[1], popped[2], popped[3] = signature, redis.call("ZSCORE", KEYS[2], last), last
  elseif passed[1] == signature then
    popped[1], popped[2], popped[3] = signature, passed[2], passed[3]
  end
  in_bulk(found, function(...)
    redis.call("ZREM", KEYS[2], ...)
  end)
  return found
end

local flying = {}
local function take(key)
  local record = KEYS[5] .. key
  local known = redis.call("HMGET", record, "uid", "attempts", "first_ms")
  if not known[1] then -- somebody else's doing: there is no such pod
    return
  end
  local attempts = (tonumber(known[2]) or 0) + 1
  redis.call("HSET", record, "queue", "inflight", "attempts", attempts, "last_ms", ARGV[4],
    "first_ms", known[3] or ARGV[4])
  flying[#flying + 1] = key
  flying[#flying + 1] = ARGV[1] .. " " .. ARGV[2]
  local at = #popped
  popped[at + 1] = key
  popped[at + 2] = known[1]
  popped[at + 3] = attempts
end
local members = #wanted > 0 and first_wanted(wanted) or first_active(ARGV[3])
for _, member in ipairs(members) do
  take(key_of(member))
end
if #members == 0 and #wanted == 0 and popped[4] == "" and ARGV[5] == "1" then
  for _, key in ipairs(first_in_backoff(tonumber(ARGV[3]))) do
    redis.call("ZREM", KEYS[3], key)
    take(key)
  end
end
if #flying > 0 then
  redis.call("HDEL", KEYS[7], "settled")
end
in_bulk(flying, function(...)
  redis.call("HSET", KEYS[4], ...)
end)
return popped
