-- pods_delete: delete pods with everything that is kept about them.
-- KEYS[1] cluster:version      string  counter of changes
-- KEYS[2] cluster:log          stream  watch log
-- KEYS[3] cluster:pods         hash    pod key to the pod
-- KEYS[4] cluster:pods:state   hash    pod key to its state line
-- KEYS[5] cluster:pods:status  hash    pod key to what the scheduler wrote
-- KEYS[6] cluster:events:      list    family: what the name of a pod's event list begins with
-- KEYS[7] leader:epoch         string  the present epoch
-- ARGV[1] epoch       text     of the leader that deletes; "" for a user
-- ARGV[2] log_length  int      entries that the watch log keeps
-- ARGV[3] reason      text     goes into the watch log for people; may be empty
-- ARGV[4] pods        msgpack  [[key, uid that the pod must have, "" for any], …]
-- RETURNS per pod 1 deleted | 0 not there, or another uid; error STALE_EPOCH
-- INCLUDE pod_state
-- INCLUDE watch_log
-- INCLUDE led
if not led(KEYS[7], ARGV[1]) then
  return redis.error_reply("STALE_EPOCH " .. ARGV[1])
end
local deleted = {}
for number, wanted in ipairs(cmsgpack.unpack(ARGV[4])) do
  local key, uid = unpack(wanted)
  local pod = pod_state(redis.call("HGET", KEYS[4], key))
  local gone = pod and (uid == "" or uid == pod.uid)
  if gone then
    local version = take_versions(KEYS[1], 1) + 1
    append(
      KEYS[2], ARGV[2], version, "change", "DELETED", "kind", "Pod", "key", key, "uid", pod.uid, "reason", ARGV[3]
    )
    redis.call("HDEL", KEYS[3], key)
    redis.call("HDEL", KEYS[4], key)
    redis.call("HDEL", KEYS[5], key)
    redis.call("DEL", KEYS[6] .. key)
  end
  deleted[number] = gone and 1 or 0
end
return deleted
