-- reserve: assume pods on nodes; a pod is refused when its node changed underneath in a way that matters.
-- A node is as it was seen when its version and that of its object are; else the pod has to fit into what is free there
-- now, unless the node object itself changed or the pod takes host ports: then it is evaluated again. The version alone
-- does not say it: when a predecessor in the batch was refused, another change may have moved it as far.
-- KEYS[1] leader:epoch         string  the present epoch
-- KEYS[2] queue:active         zset    "PLACE NS/NAME" by the order number of QueueSort
-- KEYS[3] queue:backoff        zset    NS/NAME by when the backoff ends, ms
-- KEYS[4] queue:unschedulable  zset    NS/NAME by when it was put there, ms
-- KEYS[5] queue:gated          zset    NS/NAME by when it was put there, ms
-- KEYS[6] queue:inflight       hash    NS/NAME to "EPOCH BATCH"
-- KEYS[7] queue:waiting        zset    NS/NAME by the deadline of Permit, ms
-- KEYS[8] pod:                 prefix  of the pods' records, hashes pod:NS/NAME
-- KEYS[9] reservations         hash    uid to "NS/NAME NODE EPOCH STATE ATTEMPT SINCE_MS"
-- KEYS[10] node:               prefix  of the nodes' usage, hashes node:NAME
-- ARGV[1] epoch         int      the caller's epoch
-- ARGV[2] now_ms        int      the caller's clock
-- ARGV[3] reservations  msgpack  [[key, uid, node, version, object, state, deadline_ms, {resource: amount}, ports], …];
--                                state reserved | waiting; amounts are texts; ports 0|1
-- RETURNS per pod "ok" | "changed" (evaluate again) | "gone" (no longer in flight)
-- INCLUDE fence
-- INCLUDE places
-- INCLUDE charges
-- INCLUDE in_bulk
if not fenced(KEYS[1], ARGV[1]) then
  return stale(ARGV[1])
end
local function fits(node_key, amounts)
  for resource, amount in pairs(amounts) do
    local now = redis.call("HMGET", node_key, "used." .. resource, "allocatable." .. resource)
    local used, allocatable = now[1] or "0", now[2] or "0"
    local known = is_number(used) and is_number(allocatable)
    if not known or is_below_zero(sum(sum(allocatable, minus(amount)), minus(used))) then
      return false
    end
  end
  return true
end
local verdicts, held, flown = {}, {}, {}
for number, item in ipairs(cmsgpack.unpack(ARGV[3])) do
  local key, uid, node, version, object, state, deadline, amounts, ports = unpack(item)
  local record, node_key = KEYS[8] .. key, KEYS[10] .. node
  local known = redis.call("HMGET", record, "uid", "queue", "attempts")
  local seen = redis.call("HMGET", node_key, "version", "object")
  if known[1] ~= uid or known[2] ~= "inflight" then
    verdicts[number] = "gone"
  elseif seen[2] == object and (seen[1] == version or (ports == 0 and fits(node_key, amounts))) then
    charge(node_key, amounts, "")
    held[#held + 1] = uid
    held[#held + 1] = table.concat({ key, node, ARGV[1], state, known[3], ARGV[2] }, " ")
    flown[#flown + 1] = key
    enter(key, state, deadline)
    redis.call("HSET", record, "queue", state, "node", node)
    verdicts[number] = "ok"
  else
    verdicts[number] = "changed"
  end
end
in_bulk(held, function(...)
  redis.call("HSET", KEYS[9], ...)
end)
in_bulk(flown, function(...)
  redis.call("HDEL", KEYS[6], ...)
end)
return verdicts
