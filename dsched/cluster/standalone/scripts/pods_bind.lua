-- pods_bind: bind pods to nodes, each on its own, where pod, reservation and node still stand.
-- KEYS[1] cluster:version      string  counter of changes
-- KEYS[2] cluster:log          stream  watch log
-- KEYS[3] cluster:pods:state   hash    pod key to its state line
-- KEYS[4] cluster:pods:status  hash    pod key to what the scheduler wrote
-- KEYS[5] cluster:nodes        hash    node name to the node
-- KEYS[6] reservations         hash    pod uid to "NS/NAME NODE EPOCH STATE …"
-- KEYS[7] cluster:events:      list    family: what the name of a pod's event list begins with
-- ARGV[1] now_ms      int  the caller's clock
-- ARGV[2] log_length  int  entries that the watch log keeps
-- ARGV[3] bindings    msgpack  [[key, uid, node, epoch as text], …]
-- RETURNS per pod "bound" | "conflict NODE" | "gone WHY" | "lost WHY" | "held WHY" |
--   "refused WHY"
-- INCLUDE pod_state
-- INCLUDE watch_log
-- INCLUDE pod_events
local HOLDS = { reserved = true, waiting = true, binding = true }

local bindings = cmsgpack.unpack(ARGV[3])
local keys, uids = {}, {}
for number, binding in ipairs(bindings) do
  keys[number], uids[number] = binding[1], binding[2]
end
local lines = redis.call("HMGET", KEYS[3], unpack(keys))
local held = redis.call("HMGET", KEYS[6], unpack(uids))

local known = {}
local function node_exists(node)
  if known[node] == nil then
    known[node] = redis.call("HEXISTS", KEYS[5], node) == 1
  end
  return known[node]
end

local function reservation_stands(text, key, node, epoch)
  local of, on, by, state = string.match(text or "", "^(%S+) (%S+) (%S+) (%S+)")
  return of == key and on == node and by == epoch and HOLDS[state]
end

-- Why a pod cannot be bound; nil when it can.
local function refusal(pod, key, uid, node, epoch, reservation)
  if not pod then
    return "gone there is no such pod"
  elseif pod.uid ~= uid then
    return "gone the pod has another uid, " .. pod.uid
  elseif pod.node == node then
    return "bound"
  elseif pod.node ~= "-" then
    return "conflict " .. pod.node
  elseif pod.deleting ~= "-" then
    return "gone the pod is being deleted"
  elseif not reservation_stands(reservation, key, node, epoch) then
    return "lost " .. (reservation and "the reservation is now " .. reservation or "there is no reservation any more")
  elseif pod.gated ~= "-" then
    return "held the pod has scheduling gates"
  elseif not node_exists(node) then
    return "refused node " .. node .. " does not exist"
  end
end

local replies, accepted, taken = {}, {}, {}
for number, binding in ipairs(bindings) do
  local key, uid, node, epoch = unpack(binding)
  local pod = taken[key] or pod_state(lines[number])
  replies[number] = refusal(pod, key, uid, node, epoch, held[number])
  if not replies[number] then
    replies[number] = "bound"
    pod.node, pod.key = node, key
    taken[key] = pod
    accepted[#accepted + 1] = pod
  end
end
if #accepted == 0 then
  return replies
end

local version = take_versions(KEYS[1], #accepted)
local states, bound = {}, {}
for number, pod in ipairs(accepted) do
  version = version + 1
  append(KEYS[2], ARGV[2], version, "change", "BOUND", "kind", "Pod", "key", pod.key, "uid", pod.uid, "node", pod.node)
  put_event( -- a pod is bound once: nothing to count
    KEYS[7] .. pod.key, ARGV[1], "Normal", "Scheduled", "Successfully assigned " .. pod.key .. " to " .. pod.node
  )
  bound[number] = pod.key
  states[2 * number - 1] = pod.key
  states[2 * number] = string.format("%s %s %s - - %s %d", pod.uid, pod.node, ARGV[1], pod.phase, version)
end
redis.call("HSET", KEYS[3], unpack(states))
redis.call("HDEL", KEYS[4], unpack(bound))
return replies
