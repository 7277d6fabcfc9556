-- statuses_report: write objects of a kind with what the scheduler says of them, each on its own, where it is as it was
--   when it was looked at.
-- KEYS[1] cluster:version  string  counter of changes
-- KEYS[2] cluster:log      stream  watch log
-- KEYS[3] cluster:KIND     hash    key to the object
-- KEYS[4] leader:epoch     string  the present epoch
-- ARGV[1] epoch       text     of the leader that reports; "" for others
-- ARGV[2] log_length  int      entries that the watch log keeps
-- ARGV[3] kind        text     e.g. PodGroup
-- ARGV[4] head        text     JSON up to the resourceVersion
-- ARGV[5] objects     msgpack  [[key, version that it must have, uid, JSON after the resourceVersion], …]
-- RETURNS the keys of objects that have changed, which were not written; error STALE_EPOCH
-- INCLUDE watch_log
-- INCLUDE object_version
-- INCLUDE led
if not led(KEYS[4], ARGV[1]) then
  return redis.error_reply("STALE_EPOCH " .. ARGV[1])
end
local changed = {}
for _, object in ipairs(cmsgpack.unpack(ARGV[5])) do
  local key, before, uid, tail = unpack(object)
  if object_version(redis.call("HGET", KEYS[3], key)) ~= before then
    changed[#changed + 1] = key
  else
    local version = take_versions(KEYS[1], 1) + 1
    local json = ARGV[4] .. string.format("%d", version) .. tail
    append(KEYS[2], ARGV[2], version, "change", "MODIFIED", "kind", ARGV[3], "key", key, "uid", uid, "object", json)
    redis.call("HSET", KEYS[3], key, json)
  end
end
return changed
