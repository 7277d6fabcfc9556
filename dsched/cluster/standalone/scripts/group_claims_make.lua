-- group_claims_make: make claims for devices and name them in the status of their pod group, each group with all of its
--   claims or not at all, as claims_make does for pods.
-- KEYS[1] cluster:version         string  counter of changes
-- KEYS[2] cluster:log             stream  watch log
-- KEYS[3] cluster:podgroups       hash    key to the group
-- KEYS[4] cluster:resourceclaims  hash    key to the claim
-- KEYS[5] leader:epoch            string  the present epoch
-- ARGV[1] epoch       text     of the leader that makes them; "" for others
-- ARGV[2] log_length  int      entries that the watch log keeps
-- ARGV[3] group_head  text     JSON of a group up to the resourceVersion
-- ARGV[4] claim_head  text     JSON of a claim up to the resourceVersion
-- ARGV[5] groups      msgpack  [[key, version that it must have, uid, JSON after the resourceVersion, [[key of the claim,
--                              uid, JSON after the resourceVersion], …]], …]
-- RETURNS the keys of groups that have changed, or of whose claims one is there: nothing was written for them; error
--   STALE_EPOCH
-- INCLUDE watch_log
-- INCLUDE object_version
-- INCLUDE led
-- INCLUDE new_claims
if not led(KEYS[5], ARGV[1]) then
  return redis.error_reply("STALE_EPOCH " .. ARGV[1])
end
local refused = {}
for _, group in ipairs(cmsgpack.unpack(ARGV[5])) do
  local key, before, uid, tail, claims = unpack(group)
  if object_version(redis.call("HGET", KEYS[3], key)) ~= before or any_there(KEYS[4], claims) then
    refused[#refused + 1] = key
  else
    make_claims(KEYS[1], KEYS[2], KEYS[4], ARGV[2], ARGV[4], claims)
    local version = take_versions(KEYS[1], 1) + 1
    local json = ARGV[3] .. string.format("%d", version) .. tail
    append(
      KEYS[2], ARGV[2], version, "change", "MODIFIED", "kind", "PodGroup", "key", key, "uid", uid, "object", json
    )
    redis.call("HSET", KEYS[3], key, json)
  end
end
return refused
