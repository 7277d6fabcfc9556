-- events_record: record events about pods; a repeat of a pod's newest one is counted.
-- KEYS[1] cluster:pods:state  hash  pod key to its state line
-- KEYS[2] cluster:events:     list  family: what the name of a pod's event list begins with
-- ARGV[1] now_ms  int      the caller's clock
-- ARGV[2] events  msgpack  [[key, uid, type, reason, message], …]
-- RETURNS how many were recorded; those about pods that are gone are passed over
-- INCLUDE pod_state
-- INCLUDE pod_events
local events = cmsgpack.unpack(ARGV[2])
local keys = {}
for number, event in ipairs(events) do
  keys[number] = event[1]
end
local lines = redis.call("HMGET", KEYS[1], unpack(keys))
local recorded = 0
for number, event in ipairs(events) do
  local key, uid, kind, reason, message = unpack(event)
  local pod = pod_state(lines[number])
  if pod and pod.uid == uid then
    add_event(KEYS[2] .. key, ARGV[1], kind, reason, message)
    recorded = recorded + 1
  end
end
return recorded
