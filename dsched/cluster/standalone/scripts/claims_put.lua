-- claims_put: write or delete claims for devices, each on its own, where it is as it was when it was looked at.
-- KEYS[1] cluster:version         string  counter of changes
-- KEYS[2] cluster:log             stream  watch log
-- KEYS[3] cluster:resourceclaims  hash    key to the claim
-- KEYS[4] leader:epoch            string  the present epoch
-- KEYS[5] devices                 hash    uid of a reserved pod to {holder: {device: amount}}, JSON
-- ARGV[1] epoch       text     of the leader that writes; "" for others
-- ARGV[2] log_length  int      entries that the watch log keeps
-- ARGV[3] head        text     JSON up to the resourceVersion
-- ARGV[4] claims      msgpack  [[key, version that it must have, uid, JSON after the resourceVersion ("" deletes it),
--                              [[uid of a pod, [holder, …], [device, …]], …] who must still hold these devices], …]
-- RETURNS "changed KEY" | "lost KEY" (the devices are not held any more) of claims that were not written; error
--   STALE_EPOCH
-- INCLUDE watch_log
-- INCLUDE object_version
-- INCLUDE led
if not led(KEYS[4], ARGV[1]) then
  return redis.error_reply("STALE_EPOCH " .. ARGV[1])
end
local function has_all(amounts, devices)
  for _, device in ipairs(devices) do
    if type(amounts) ~= "table" or not amounts[device] then
      return false
    end
  end
  return true
end

local function holds(uid, holders, devices)
  local readable, held = pcall(cjson.decode, redis.call("HGET", KEYS[5], uid) or "{}")
  for _, holder in ipairs(readable and type(held) == "table" and holders or {}) do
    if has_all(held[holder], devices) then
      return true
    end
  end
  return false
end

local function all_hold(needs)
  for _, need in ipairs(needs) do
    if not holds(unpack(need)) then
      return false
    end
  end
  return true
end

local refused = {}
for _, claim in ipairs(cmsgpack.unpack(ARGV[4])) do
  local key, before, uid, tail, needs = unpack(claim)
  if object_version(redis.call("HGET", KEYS[3], key)) ~= before then
    refused[#refused + 1] = "changed " .. key
  elseif not all_hold(needs) then
    refused[#refused + 1] = "lost " .. key
  else
    local version = take_versions(KEYS[1], 1) + 1
    if tail == "" then
      append(KEYS[2], ARGV[2], version, "change", "DELETED", "kind", "ResourceClaim", "key", key, "uid", uid)
      redis.call("HDEL", KEYS[3], key)
    else
      local json = ARGV[3] .. string.format("%d", version) .. tail
      append(
        KEYS[2], ARGV[2], version,
        "change", "MODIFIED", "kind", "ResourceClaim", "key", key, "uid", uid, "object", json
      )
      redis.call("HSET", KEYS[3], key, json)
    end
  end
end
return refused
