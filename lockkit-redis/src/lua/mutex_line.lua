-- The rest of mutex_acquire: somebody holds it, waits for it, or this claim has asked before.
local attempt, ttl, run = sub(ARGV[1], 2), ARGV[2], ARGV[5]
local flag, stamp, news = match(ARGV[4], '^..(.)(%d+):(.*)$')
vouch(run)

local function take(number)
  call('SET', KEYS[1], ARGV[1] .. format('%d', number) .. ARGV[3], 'PX', ttl)
  return number
end

if enters then
  return take(next_number(run))
end
if not held then
  -- Its holder is gone. Whoever comes next is let in now, and it may be this one.
  local holder, number = hand_over(attempt, nil, run, news)
  if holder == nil then
    number = number or next_number(run)
    call('HDEL', KEYS[4], attempt)
    return take(number)
  elseif holder == attempt then
    return number
  end
  held = call('GET', KEYS[1])
end
check(held)
local fence, lease = match(held, '^(%d+):(%d+):', 18)
if not fence then
  return redis.error_reply('CORRUPT the hold is of another version')
end
if sub(held, 1, 17) == ARGV[1] then
  -- The answer to an earlier request was lost, or the message about it.
  call('PEXPIRE', KEYS[1], lease)
  return tonumber(fence)
end
local left = call('PTTL', KEYS[1])
if left > tonumber(lease) or left < 0 then
  -- The server's clock went back, or somebody took the expiry away.
  call('PEXPIRE', KEYS[1], lease)
  left = tonumber(lease)
end
if waits == 119 then
  local now = math.floor(now_us() / 1000)
  local since, client, label = match(ARGV[3], '^:%d+:(%d+):%-:(%w*):(.*)$')
  local seq
  if how == 97 then
    local known = call('HGET', KEYS[4], attempt)
    seq = known and match(known, '^%d+:(%d+):')
  end
  if not seq then
    local number = next_number(run)
    seq = format('%d', number)
    if number % 7 == 0 then
      sweep(now)
    end
  end
  local place = format('%d', now + ttl) .. ':' .. seq .. ':' .. ttl .. ':' .. since .. ':' .. flag
    .. ':x:' .. client .. ':' .. stamp .. ':' .. label
  call('HSET', KEYS[4], attempt, place)
  call('ZADD', KEYS[3], seq, attempt .. PAD)
  -- What a killed process leaves is gone a lease later.
  local keep = tonumber(ttl)
  if call('PTTL', KEYS[3]) < keep then
    call('PEXPIRE', KEYS[3], keep + 1000)
  end
  if call('PTTL', KEYS[4]) < keep then
    call('PEXPIRE', KEYS[4], keep + 1000)
  end
end
return -math.max(left, 1)
