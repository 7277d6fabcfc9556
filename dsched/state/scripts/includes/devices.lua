-- devices: what reserved pods take of devices until their claims say so in the cluster: what each pod holds, by holder (a
-- claim or the pod itself), and how much of each device, share or counter is taken in all. Amounts are texts. What the
-- pods of a group hold for one claim is taken once; "sharers/HOLDER" says how many hold it beside the first.
local function sharers(holder)
  return "sharers/" .. holder
end
local function taken(used_key, name)
  local used = redis.call("HGET", used_key, name) or "0"
  return is_number(used) and used or "0"
end
local function count_device(used_key, name, amount)
  local left = sum(taken(used_key, name), amount)
  if left == "0" or is_below_zero(left) then
    redis.call("HDEL", used_key, name)
  else
    redis.call("HSET", used_key, name, left)
  end
end
local function give_back_amounts(used_key, holder, amounts)
  if taken(used_key, sharers(holder)) ~= "0" then
    count_device(used_key, sharers(holder), "-1")
    return
  end
  for name, amount in pairs(type(amounts) == "table" and amounts or {}) do
    if type(amount) == "string" and is_number(amount) then
      count_device(used_key, name, minus(amount))
    end
  end
end
-- Gives back what a pod holds, of one holder where that is named; true when it held something.
local function give_back_devices(held_key, used_key, uid, holder)
  local text = redis.call("HGET", held_key, uid)
  local readable, held = pcall(cjson.decode, text or "{}")
  held = readable and type(held) == "table" and held or {}
  local given = false
  for of, amounts in pairs(held) do
    if not holder or of == holder then
      give_back_amounts(used_key, of, amounts)
      held[of] = nil
      given = true
    end
  end
  if next(held) == nil then
    redis.call("HDEL", held_key, uid)
  elseif given then
    redis.call("HSET", held_key, uid, cjson.encode(held))
  end
  return given
end
