-- reserve: assume pods on nodes; a pod is refused when its node changed underneath in a way that matters, or when another
-- reserved pod has its devices. Pods come in units, those of a pod group in one: where one of a unit is refused, all are.
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
-- KEYS[13] quota:              prefix  of the queues' usage, hashes quota:NAME
-- KEYS[14] queue:group         zset    "GROUP NS/NAME" of pods beside their pod group, by when they were queued, microseconds
-- ARGV[1] epoch         int      the caller's epoch
-- ARGV[2] now_ms        int      the caller's clock
-- ARGV[3] units         msgpack  [[[key, uid, node, version, object, state, deadline_ms, {resource: amount}, ports,
--                                [[holder, {device: amount}, {device: limit}], …],
--                                [[queue, {resource: amount}], …]], …], …]; state reserved | waiting;
--                                amounts are texts; ports 0|1; of a device without a limit there is 1
-- RETURNS per pod "ok" | "changed" (evaluate again) | "taken" (so are devices; evaluate again) | "limited" (so is a
--   queue; evaluate again) | "gone" (no longer in flight) | "together" (another one of its unit was refused)
-- INCLUDE fence
-- INCLUDE places
-- INCLUDE in_bulk
-- INCLUDE charges
-- INCLUDE devices
if not fenced(KEYS[1], ARGV[1]) then
  return stale(ARGV[1])
end
-- Devices that a pod holds under its own uid are for its extended resources, whatever of them the node has nothing of.
local function has_own(uid, devices)
  for _, charge in ipairs(devices) do
    if charge[1] == uid then
      return true
    end
  end
  return false
end
-- What pods of the unit that were looked at before take: resources by node, how many pods by node, devices, the claims for
-- which they hold these (pods of a group that use one claim hold its devices together), and resources by queue.
local NOTHING = {} -- of a pod by itself; never written
local ahead, pods_ahead, devices_ahead, holders_ahead, queues_ahead = NOTHING, NOTHING, NOTHING, NOTHING, NOTHING
local function fits(node_key, amounts, by_devices)
  local taken_ahead = ahead[node_key] or {}
  for resource, amount in pairs(amounts) do
    local now = redis.call("HMGET", node_key, "used." .. resource, "allocatable." .. resource)
    local used, allocatable = now[1] or "0", now[2] or "0"
    local known = is_number(used) and is_number(allocatable)
    local met = by_devices and allocatable == "0"
    if known and taken_ahead[resource] then
      used = sum(used, taken_ahead[resource])
    end
    if not known or (not met and is_below_zero(sum(sum(allocatable, minus(amount)), minus(used)))) then
      return false
    end
  end
  return true
end
local function are_free(devices)
  if #devices == 0 then
    return true
  end
  local wanted, limits = {}, {}
  for _, charge in ipairs(devices) do
    for name, amount in pairs(holders_ahead[charge[1]] and NOTHING or charge[2]) do
      wanted[name] = sum(wanted[name] or devices_ahead[name] or "0", amount)
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
-- Queues as they are when this script is done: each is read once and written once, for pods of a batch share those above
-- them. By queue and resource: what it has used before, what pods of this script take more, and what is left below the
-- limit; false where there is none, or somebody has written what is no number.
local seen_queues = {}
local function seen_queue(queue, resource)
  local of_queue = seen_queues[queue]
  if not of_queue then
    of_queue = {}
    seen_queues[queue] = of_queue
  end
  local known = of_queue[resource]
  if not known then
    local now = redis.call("HMGET", KEYS[13] .. queue, "used." .. resource, "allocatable." .. resource)
    local used, limit = now[1] or "0", now[2]
    known = { more = "0", left = limit and is_number(used) and is_number(limit) and sum(limit, minus(used)) }
    of_queue[resource] = known
  end
  return known
end
local function are_within(queues)
  for _, charge in ipairs(queues) do
    local taken_ahead = queues_ahead[charge[1]] or NOTHING
    for resource, amount in pairs(charge[2]) do
      local left = seen_queue(charge[1], resource).left
      if left and is_below_zero(sum(left, minus(sum(amount, taken_ahead[resource] or "0")))) then
        return false
      end
    end
  end
  return true
end
local function charge_queues(queues)
  for _, each in ipairs(queues) do
    for resource, amount in pairs(each[2]) do
      local known = seen_queue(each[1], resource)
      known.more = sum(known.more, amount)
      known.left = known.left and sum(known.left, minus(amount))
    end
  end
end
local function write_queues()
  for queue, of_queue in pairs(seen_queues) do
    local amounts = {}
    for resource, known in pairs(of_queue) do
      if known.more ~= "0" then
        amounts[resource] = known.more
      end
    end
    if next(amounts) then
      charge(KEYS[13] .. queue, amounts, "")
    end
  end
end
local function count_ahead(node_key, amounts, devices, queues)
  for _, charge in ipairs(queues) do
    local taken_ahead = queues_ahead[charge[1]] or {}
    for resource, amount in pairs(charge[2]) do
      taken_ahead[resource] = sum(taken_ahead[resource] or "0", amount)
    end
    queues_ahead[charge[1]] = taken_ahead
  end
  local taken_ahead = ahead[node_key] or {}
  for resource, amount in pairs(amounts) do
    taken_ahead[resource] = sum(taken_ahead[resource] or "0", amount)
  end
  ahead[node_key] = taken_ahead
  pods_ahead[node_key] = (pods_ahead[node_key] or 0) + 1
  for _, charge in ipairs(devices) do
    for name, amount in pairs(holders_ahead[charge[1]] and NOTHING or charge[2]) do
      devices_ahead[name] = sum(devices_ahead[name] or "0", amount)
    end
    holders_ahead[charge[1]] = true
  end
end
-- Args: taken_for: claims whose devices pods of the unit have taken already; this one's are added.
local function take(uid, devices, taken_for)
  if #devices == 0 then
    return
  end
  local holds = {}
  for _, charge in ipairs(devices) do
    holds[charge[1]] = charge[2]
    if taken_for[charge[1]] then
      count_device(KEYS[12], sharers(charge[1]), "1")
    else
      taken_for[charge[1]] = true
      for name, amount in pairs(charge[2]) do
        count_device(KEYS[12], name, amount)
      end
    end
  end
  if next(holds) then
    redis.call("HSET", KEYS[11], uid, cjson.encode(holds))
  end
end
local attempts = {}
-- What becomes of a pod, and what its node was seen like.
local function verdict_of(item)
  local key, uid, node, version, object, _, _, amounts, ports, devices, queues = unpack(item)
  local node_key = KEYS[10] .. node
  local known = redis.call("HMGET", KEYS[8] .. key, "uid", "queue", "attempts")
  local seen = look_at(node_key, amounts)
  if known[1] ~= uid or known[2] ~= "inflight" then
    return "gone"
  end
  attempts[uid] = known[3] or "0"
  local before = pods_ahead[node_key]
  local expected = before and string.format("%.0f", tonumber(version) - before) or version
  local as_seen = seen.object == object and seen.version == expected
  if not as_seen and (seen.object ~= object or ports ~= 0 or not fits(node_key, amounts, has_own(uid, devices))) then
    return "changed"
  end
  if not are_free(devices) then
    return "taken"
  end
  return are_within(queues) and "ok" or "limited", seen
end
local verdicts, held, flown = {}, {}, {}
-- Args: seen: what its node is like, where nobody of its unit has been put there since.
local function reserve(item, taken_for, seen)
  local key, uid, node, _, _, state, deadline, amounts, _, devices, queues = unpack(item)
  local record = KEYS[8] .. key
  charge(KEYS[10] .. node, amounts, "", seen)
  take(uid, devices, taken_for)
  charge_queues(queues)
  held[#held + 1] = uid
  held[#held + 1] = table.concat({ key, node, ARGV[1], state, attempts[uid], ARGV[2] }, " ")
  flown[#flown + 1] = key
  enter(key, state, deadline)
  redis.call("HSET", record, "queue", state, "node", node)
end
for _, unit in ipairs(cmsgpack.unpack(ARGV[3])) do
  local first, fine = #verdicts + 1, true
  if #unit > 1 then
    ahead, pods_ahead, devices_ahead, holders_ahead, queues_ahead = {}, {}, {}, {}, {}
  else
    ahead, pods_ahead, devices_ahead, holders_ahead, queues_ahead = NOTHING, NOTHING, NOTHING, NOTHING, NOTHING
  end
  local seen
  for number, item in ipairs(unit) do
    local verdict
    verdict, seen = verdict_of(item)
    fine = fine and verdict == "ok"
    verdicts[#verdicts + 1] = verdict
    if number < #unit then
      count_ahead(KEYS[10] .. item[3], item[8], item[10], item[11])
    end
  end
  local taken_for = {}
  for number, item in ipairs(unit) do
    local at = first + number - 1
    if fine then
      reserve(item, taken_for, #unit == 1 and seen or nil)
    elseif verdicts[at] == "ok" then
      verdicts[at] = "together"
    end
  end
end
write_queues()
in_bulk(held, function(...)
  redis.call("HSET", KEYS[9], ...)
end)
in_bulk(flown, function(...)
  redis.call("HDEL", KEYS[6], ...)
end)
return verdicts
