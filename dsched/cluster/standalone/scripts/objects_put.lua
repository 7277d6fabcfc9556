-- objects_put: write objects of a kind other than Pod, all of them or, when one has changed, none.
-- KEYS[1] cluster:id        string  random name of the cluster's history
-- KEYS[2] cluster:version   string  counter of changes
-- KEYS[3] cluster:log       stream  watch log
-- KEYS[4] cluster:KIND      hash    key to the object
-- ARGV[1] id          text     the name to give a history that begins now
-- ARGV[2] log_length  int      entries that the watch log keeps
-- ARGV[3] kind        text     e.g. Node
-- ARGV[4] head        text     JSON up to the resourceVersion
-- ARGV[5] objects     msgpack  [[key, version ("" where the object must not be there), uid, JSON after the
--                              resourceVersion], …]
-- RETURNS {} | the keys of objects that have changed; nothing was written then
-- INCLUDE watch_log
-- INCLUDE object_version
local given = cmsgpack.unpack(ARGV[5])
local keys = {}
for number, object in ipairs(given) do
  keys[number] = object[1]
end
local stored = redis.call("HMGET", KEYS[4], unpack(keys))
local changed = {}
for number, object in ipairs(given) do
  if object_version(stored[number]) ~= object[2] then
    changed[#changed + 1] = object[1]
  end
end
if #changed > 0 then
  return changed
end

redis.call("SETNX", KEYS[1], ARGV[1])
local version = take_versions(KEYS[2], #keys)
local objects = {}
for number, object in ipairs(given) do
  local key, before, uid, tail = unpack(object)
  version = version + 1
  local change = before == "" and "ADDED" or "MODIFIED"
  local json = ARGV[4] .. string.format("%d", version) .. tail
  append(KEYS[3], ARGV[2], version, "change", change, "kind", ARGV[3], "key", key, "uid", uid, "object", json)
  objects[2 * number - 1] = key
  objects[2 * number] = json
end
redis.call("HSET", KEYS[4], unpack(objects))
return {}
