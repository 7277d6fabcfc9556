-- pods_put: write pods as applied, all of them or, when one has changed since the caller looked, none.
-- KEYS[1] cluster:id           string  random name of the cluster's history
-- KEYS[2] cluster:version      string  counter of changes
-- KEYS[3] cluster:log          stream  watch log
-- KEYS[4] cluster:pods         hash    pod key to the pod
-- KEYS[5] cluster:pods:state   hash    pod key to its state line
-- KEYS[6] cluster:pods:status  hash    pod key to what the scheduler wrote
-- KEYS[7] cluster:events:      list    family: what the name of a pod's event list begins with
-- ARGV[1] id          text     the name to give a history that begins now
-- ARGV[2] log_length  int      entries that the watch log keeps
-- ARGV[3] head        text     JSON up to the resourceVersion
-- ARGV[4] pods        msgpack  [[key, version ("" where the pod must not be there), change (ADDED, MODIFIED, REPLACED),
--                              uid, node it is bound to ("" for none), state line without version, JSON after the
--                              resourceVersion], …]
-- RETURNS {} | the keys of pods that have changed; nothing was written then
-- INCLUDE pod_state
-- INCLUDE watch_log
local pods = cmsgpack.unpack(ARGV[4])
local keys = {}
for number, pod in ipairs(pods) do
  keys[number] = pod[1]
end
local lines = redis.call("HMGET", KEYS[5], unpack(keys))
local before, changed, changes = {}, {}, 0
for number, pod in ipairs(pods) do
  local key, version, change = unpack(pod)
  before[number] = pod_state(lines[number]) or { version = "" }
  if before[number].version ~= version then
    changed[#changed + 1] = key
  end
  changes = changes + (change == "REPLACED" and 2 or 1)
end
if #changed > 0 then
  return changed
end

redis.call("SETNX", KEYS[1], ARGV[1])
local version = take_versions(KEYS[2], changes)
local objects, states = {}, {}
for number, pod in ipairs(pods) do
  local key, _, change, uid, node, state, tail = unpack(pod)
  if change == "REPLACED" then
    version = version + 1
    append(KEYS[3], ARGV[2], version, "change", "DELETED", "kind", "Pod", "key", key, "uid", before[number].uid)
    redis.call("HDEL", KEYS[6], key)
    redis.call("DEL", KEYS[7] .. key)
    change = "ADDED"
  end
  version = version + 1
  local object = ARGV[3] .. string.format("%d", version) .. tail
  local entry = { "change", change, "kind", "Pod", "key", key, "uid", uid, "object", object }
  if node ~= "" then
    entry[11], entry[12] = "node", node
  elseif change == "MODIFIED" then
    entry[11], entry[12] = "status", redis.call("HGET", KEYS[6], key) or ""
  end
  append(KEYS[3], ARGV[2], version, unpack(entry))
  objects[2 * number - 1], states[2 * number - 1] = key, key
  objects[2 * number] = object
  states[2 * number] = state .. string.format(" %d", version)
end
redis.call("HSET", KEYS[4], unpack(objects))
redis.call("HSET", KEYS[5], unpack(states))
return {}
