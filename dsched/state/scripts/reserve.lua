-- reserve: assume pods on nodes; a pod is refused when its node changed underneath in a way that matters, or when another
-- reserved pod has its devices.
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
-- KEYS[11] devices            hash    uid to {holder: {device, share or counter: amount}}, JSON
-- KEYS[12] devices:used       hash    device, share or counter to how much reserved pods take of it
-- ARGV[1] epoch         int      the caller's epoch
-- ARGV[2] now_ms        int      the caller's clock
-- ARGV[3] reservations  msgpack  [[key, uid, node, version, object, state, deadline_ms, {resource: amount}, ports,
--                                [[holder, {device: amount}, {device: limit}], …]], …]; state reserved | waiting;
--                                amounts are texts; ports 0|1; of a device without a limit there is 1
-- RETURNS per pod "ok" | "changed" (evaluate again) | "taken" (so are devices; evaluate again) | "gone" (no longer in
--   flight)
-- INCLUDE fence
-- INCLUDE places
-- INCLUDE charges
-- INCLUDE devices
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
local function are_free(devices)
  local wanted, limits = {}, {}
  for _, charge in ipairs(devices) do
    for name, amount in pairs(charge[2]) do
      wanted[name] = sum(wanted[name] or "0", amount)
      limits[name] = charge[3][name] or "1"
    end
  end
  for name, amount in pairs(wanted) do
    if is_below_zero(sum(limits[name], minus(sum(taken(KEYS[12], name), amount)))) then
      return false
    end
  end
  return true
end
local function take(uid, devices)
  local holds = {}
  for _, charge in ipairs(devices) do
    holds[charge[1]] = charge[2]
    for name, amount in pairs(charge[2]) do
      count_device(KEYS[12], name, amount)
    end
  end
  if next(holds) then
    redis.call("HSET", KEYS[11], uid, cjson.encode(holds))
  end
end
local verdicts, held, flown = {}, {}, {}
for number, item in ipairs(cmsgpack.unpack(ARGV[3])) do
  local key, uid, node, version, object, state, deadline, amounts, ports, devices = unpack(item)
  local record, node_key = KEYS[8] .. key, KEYS[10] .. node
  local known = redis.call("HMGET", record, "uid", "queue", "attempts")
  local seen = redis.call("HMGET", node_key, "version", "object")
  if known[1] ~= uid or known[2] ~= "inflight" then
    verdicts[number] = "gone"
  elseif seen[2] ~= object or (seen[1] ~= version and (ports ~= 0 or not fits(node_key, amounts))) then
    verdicts[number] = "changed"
  elseif not are_free(devices) then
    verdicts[number] = "taken"
  else
    charge(node_key, amounts, "")
    take(uid, devices)
    held[#held + 1] = uid
    held[#held + 1] = table.concat({ key, node, ARGV[1], state, known[3], ARGV[2] }, " ")
    flown[#flown + 1] = key
    enter(key, state, deadline)
    redis.call("HSET", record, "queue", state, "node", node)
    verdicts[number] = "ok"
  end
end
in_bulk(held, function(...)
  redis.call("HSET", KEYS[9], ...)
end)
in_bulk(flown, function(...)
  redis.call("HDEL", KEYS[6], ...)
end)
return verdicts
