-- pods_report: write what the scheduler says about pending pods, where it differs from what it said before.
-- KEYS[1] cluster:version      string  counter of changes
-- KEYS[2] cluster:log          stream  watch log
-- KEYS[3] cluster:pods:state   hash    pod key to its state line
-- KEYS[4] cluster:pods:status  hash    pod key to what the scheduler wrote
-- KEYS[5] leader:epoch         string  the present epoch
-- ARGV[1] epoch       text     of the leader that reports; "" for others
-- ARGV[2] now         text     the caller's time, RFC 3339
-- ARGV[3] log_length  int      entries that the watch log keeps
-- ARGV[4] reports     msgpack  [[key, uid, nominated node ("=NODE" sets it, "" leaves it), last fields of the
--                              condition as JSON, "" leaves the condition], …]
-- RETURNS how many pods were written; error STALE_EPOCH
-- INCLUDE pod_state
-- INCLUDE watch_log
-- INCLUDE led
if not led(KEYS[5], ARGV[1]) then
  return redis.error_reply("STALE_EPOCH " .. ARGV[1])
end
local OPENING = '"conditions":[{"type":"PodScheduled","status":"False","lastTransitionTime":"'

local reports = cmsgpack.unpack(ARGV[4])
local keys = {}
for number, report in ipairs(reports) do
  keys[number] = report[1]
end
local lines = redis.call("HMGET", KEYS[3], unpack(keys))
local written = redis.call("HMGET", KEYS[4], unpack(keys))

-- The new status: the nominated node stays where none is given, the time stays that of the first refusal. That there is
-- none is written, too: the pod may have come with one.
local function status(old, nominated, rest)
  local node = string.match(old, '^{"nominatedNodeName":"([^"]*)",')
  local since = string.match(old, '"PodScheduled","status":"False","lastTransitionTime":"([^"]*)"') or ARGV[2]
  if nominated ~= "" then
    node = string.sub(nominated, 2)
  end
  local head = node and '{"nominatedNodeName":"' .. node .. '",' or "{"
  if rest == "" then
    local kept = string.match(old, '"conditions":.*$')
    if not kept and not node then
      return old
    end
    return head .. (kept or '"conditions":[]}')
  end
  return head .. OPENING .. since .. '",' .. rest .. "}]}"
end

local latest, changed = {}, {}
for number, report in ipairs(reports) do
  local key, uid, nominated, rest = unpack(report)
  local pod = pod_state(lines[number])
  if pod and pod.uid == uid and pod.node == "-" then
    local old = latest[key] or written[number] or ""
    local new = status(old, nominated, rest)
    if new ~= old then
      latest[key] = new
      changed[#changed + 1] = { key = key, pod = pod, status = new }
    end
  end
end
if #changed == 0 then
  return 0
end

local version = take_versions(KEYS[1], #changed)
local states, statuses = {}, {}
for number, change in ipairs(changed) do
  local pod, key = change.pod, change.key
  version = version + 1
  append(
    KEYS[2], ARGV[3], version, "change", "STATUS", "kind", "Pod", "key", key, "uid", pod.uid, "status", change.status
  )
  states[2 * number - 1], statuses[2 * number - 1] = key, key
  states[2 * number] =
    string.format("%s - %s %s %s %s %d", pod.uid, pod.bound_at, pod.gated, pod.deleting, pod.phase, version)
  statuses[2 * number] = change.status
end
redis.call("HSET", KEYS[3], unpack(states))
redis.call("HSET", KEYS[4], unpack(statuses))
return #changed
