-- claims_make: make claims for devices and name them in the status of their pod, each pod with all of its claims or not
--   at all: there is no claim that its pod does not know of, nor a name without a claim.
-- KEYS[1] cluster:version         string  counter of changes
-- KEYS[2] cluster:log             stream  watch log
-- KEYS[3] cluster:pods            hash    pod key to the pod
-- KEYS[4] cluster:pods:state      hash    pod key to its state line
-- KEYS[5] cluster:pods:status     hash    pod key to what the scheduler wrote
-- KEYS[6] cluster:resourceclaims  hash    key to the claim
-- KEYS[7] leader:epoch            string  the present epoch
-- ARGV[1] epoch       text     of the leader that makes them; "" for others
-- ARGV[2] log_length  int      entries that the watch log keeps
-- ARGV[3] pod_head    text     JSON of a pod up to the resourceVersion
-- ARGV[4] claim_head  text     JSON of a claim up to the resourceVersion
-- ARGV[5] pods        msgpack  [[key, version that it must have, uid, node it is bound to ("" for none), state line
--                              without version, JSON after the resourceVersion, [[key of the claim, uid, JSON after the
--                              resourceVersion], …]], …]
-- RETURNS the keys of pods that have changed, or of whose claims one is there: nothing was written for them; error
--   STALE_EPOCH
-- INCLUDE pod_state
-- INCLUDE watch_log
-- INCLUDE led
-- INCLUDE new_claims
if not led(KEYS[7], ARGV[1]) then
  return redis.error_reply("STALE_EPOCH " .. ARGV[1])
end

local refused = {}
for _, pod in ipairs(cmsgpack.unpack(ARGV[5])) do
  local key, before, uid, node, state, tail, claims = unpack(pod)
  local now = pod_state(redis.call("HGET", KEYS[4], key))
  if not now or now.version ~= before or any_there(KEYS[6], claims) then
    refused[#refused + 1] = key
  else
    make_claims(KEYS[1], KEYS[2], KEYS[6], ARGV[2], ARGV[4], claims)
    local version = take_versions(KEYS[1], 1) + 1
    local object = ARGV[3] .. string.format("%d", version) .. tail
    local entry = { "change", "MODIFIED", "kind", "Pod", "key", key, "uid", uid, "object", object }
    if node ~= "" then
      entry[11], entry[12] = "node", node
    else
      entry[11], entry[12] = "status", redis.call("HGET", KEYS[5], key) or ""
    end
    append(KEYS[2], ARGV[2], version, unpack(entry))
    redis.call("HSET", KEYS[3], key, object)
    redis.call("HSET", KEYS[4], key, state .. string.format(" %d", version))
  end
end
return refused
