-- objects_delete: delete objects of a kind other than Pod.
-- KEYS[1] cluster:version  string  counter of changes
-- KEYS[2] cluster:log      stream  watch log
-- KEYS[3] cluster:KIND     hash    key to the object
-- ARGV[1] log_length  int      entries that the watch log keeps
-- ARGV[2] kind        text     e.g. Node
-- ARGV[3] keys        msgpack  of the objects
-- RETURNS per object 1 deleted | 0 not there
-- INCLUDE watch_log
-- INCLUDE object_version
local deleted = {}
for number, key in ipairs(cmsgpack.unpack(ARGV[3])) do
  local object = redis.call("HGET", KEYS[3], key)
  local _, uid = object_version(object)
  if object then
    append(
      KEYS[2], ARGV[1], take_versions(KEYS[1], 1) + 1,
      "change", "DELETED", "kind", ARGV[2], "key", key, "uid", uid
    )
    redis.call("HDEL", KEYS[3], key)
  end
  deleted[number] = object and 1 or 0
end
return deleted
