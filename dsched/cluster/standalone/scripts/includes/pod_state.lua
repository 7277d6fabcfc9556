-- pod_state: a pod's state line taken apart; nil for a pod that is not there. node is "-" while it is not bound, gated and
-- deleting are "-" where they do not hold.
local function pod_state(line)
  if not line then
    return nil
  end
  local uid, node, bound_at, gated, deleting, phase, version =
    string.match(line, "^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%d+)$")
  return {
    uid = uid, node = node, bound_at = bound_at, gated = gated, deleting = deleting, phase = phase, version = version,
  }
end
