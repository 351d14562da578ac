-- Takes several resources of any kinds but latches: all, or none. After hall.lua and turn.lua. No flags: not under
-- memory pressure, for it makes something new.
--
-- KEYS  for each claim 1 h, 2 x, 3 q, 4 w, 5 z, 6 fence counter of its bucket, 7 server of its bucket;
--       for a mutex, 1 is the hold, and 2 and 5 are of no use
-- ARGV  1 inbox prefix, 2 client; then for each claim 1 attempt, 2 lease in ms, 3 mode (`m` for a
--       mutex), 4 `f` fair | `b` barging, 5 size or '', 6 run, 7 label
-- Gives {fence, segment or -1, ...} for each claim in order; {} if one of them cannot enter; or
-- {'MISMATCH', stored, which claim} for one with another size.
local claims = {}
for i = 1, #KEYS / 7 do
  local arg = 7 * i - 5
  local hall = open(7 * i - 6, ARGV[arg + 6], ARGV[1])
  local claim = {
    hall = hall, attempt = ARGV[arg + 1], ttl = tonumber(ARGV[arg + 2]), mode = ARGV[arg + 3],
    order = ARGV[arg + 4], size = ARGV[arg + 5], label = ARGV[arg + 7],
  }
  claims[i] = claim
  local held
  if claim.mode == 'm' then
    claim.mode = 'x'
    hall.is_mutex = true
    hall.now = now_ms()
    held = call('GET', hall.h)
    hall.n = held and 1 or 0
    if held and sub(held, 1, 1) ~= '1' then
      corrupt()
    end
    held = held and sub(held, 2, 17) == claim.attempt and held
    claim.fence, claim.lease = match(held or '', '^(%d+):(%d+):', 18)
  else
    settle(hall)
    held = call('HGET', hall.h, claim.attempt)
    if held then
      local hold = read_hold(held)
      claim.fence, claim.lease, claim.held = hold.fence, hold.ttl, hold.mode
    end
  end
  if not held then
    -- First whoever is before: a holder may have died, or the first in line.
    advance(hall)
    local stored = claim.size ~= '' and call('GET', hall.z)
    if stored and stored ~= claim.size then
      return { 'MISMATCH', stored, i }
    end
    hall.size = tonumber(claim.size)
    claim.is_first = claim.size ~= '' and not stored
    local passes = claim.order == 'b' or match(claim.mode, '^[ao]') or hall.is_nobody_waiting
    claim.held = passes and fits(hall, claim.mode, {})
    if not claim.held then
      return {}
    end
  end
end

local grants = {}
for _, claim in ipairs(claims) do
  local hall = claim.hall
  if claim.fence then
    -- The answer to an earlier request was lost.
    if hall.is_mutex then
      call('PEXPIRE', hall.h, claim.lease)
    else
      call('ZADD', hall.x, hall.now + claim.lease, claim.attempt)
      keep_holds(hall, claim.lease)
    end
  else
    if claim.is_first then
      call('SET', hall.z, claim.size)
    end
    claim.fence = token(hall, claim.held)
    add(hall, claim.attempt, claim.held, claim.ttl, ARGV[2], claim.label, claim.fence)
  end
  local segment = match(claim.held or '', '^o(%d+)$')
  grants[#grants + 1] = tonumber(claim.fence)
  grants[#grants + 1] = tonumber(segment or -1)
end
return grants
