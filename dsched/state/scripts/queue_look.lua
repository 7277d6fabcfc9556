-- queue_look: read everything that says where pods stand, as of one moment; changes nothing.
-- KEYS[1] leader:epoch         string  the present epoch
-- KEYS[2] queue:active         zset    "PLACE NS/NAME" by the order number of QueueSort
-- KEYS[3] queue:backoff        zset    NS/NAME by when the backoff ends, ms
-- KEYS[4] queue:unschedulable  zset    NS/NAME by when it was put there, ms
-- KEYS[5] queue:gated          zset    NS/NAME by when it was put there, ms
-- KEYS[6] queue:inflight       hash    NS/NAME to "EPOCH BATCH"
-- KEYS[7] queue:waiting        zset    NS/NAME by the deadline of Permit, ms
-- KEYS[8] pod:                 prefix  of the pods' records, hashes pod:NS/NAME
-- KEYS[9] queue:group          zset    "GROUP NS/NAME" of pods beside their pod group, by when they were queued, microseconds
-- KEYS[10] reservations        hash    uid to "NS/NAME NODE EPOCH STATE ATTEMPT SINCE_MS"
-- ARGV[1] pods  msgpack  [[key, [member of active or group that may be there, …], [uid that may be reserved for, …]], …]
-- RETURNS the epoch, then per pod {fields of its record, in-flight entry, {place, member, score, …}, {uid, reservation, …}}
local ZSETS = { backoff = KEYS[3], unschedulable = KEYS[4], gated = KEYS[5], waiting = KEYS[7] }

local function scores(key, turns)
  local found = {}
  local function ask(place, zset, member)
    local score = redis.call("ZSCORE", zset, member)
    if score then
      found[#found + 1] = place
      found[#found + 1] = member
      found[#found + 1] = score
    end
  end
  for member in pairs(turns) do
    ask("active", KEYS[2], member)
    ask("group", KEYS[9], member)
  end
  for place, zset in pairs(ZSETS) do
    ask(place, zset, key)
  end
  return found
end

local function held(uids)
  local found = {}
  for uid in pairs(uids) do
    local text = redis.call("HGET", KEYS[10], uid)
    if text then
      found[#found + 1] = uid
      found[#found + 1] = text
    end
  end
  return found
end

local reply = { redis.call("GET", KEYS[1]) or "0" }
for _, asked in ipairs(cmsgpack.unpack(ARGV[1])) do
  local key, members, uids = unpack(asked)
  local record = KEYS[8] .. key
  local known = redis.call("HMGET", record, "uid", "place", "group")
  local turns, owners = {}, {}
  for _, member in ipairs(members) do
    turns[member] = true
  end
  for _, uid in ipairs(uids) do
    owners[uid] = true
  end
  if known[2] then
    turns[known[2] .. " " .. key] = true
  end
  if known[3] then
    turns[known[3] .. " " .. key] = true
  end
  if known[1] then
    owners[known[1]] = true
  end
  reply[#reply + 1] =
    { redis.call("HGETALL", record), redis.call("HGET", KEYS[6], key), scores(key, turns), held(owners) }
end
return reply
