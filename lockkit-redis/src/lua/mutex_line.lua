-- The rest of mutex_acquire: somebody holds it, waits for it, or this claim has asked before.
local attempt, ttl, run = ARGV[1], ARGV[2], ARGV[5]
local since, client, label = string.match(ARGV[6], '^(%d+):%-:(%w*):(.*)$')
vouch(run)
if enters then
  local number = next_number(run)
  take(attempt, number, ttl, since, client, label)
  return number
end
if not held then
  -- Its holder is gone. Whoever comes next is let in now, and it may be this one.
  local holder, number = hand_over(attempt, nil, run, ARGV[7])
  if holder == nil then
    number = number or next_number(run)
    call('HDEL', KEYS[3], attempt)
    take(attempt, number, ttl, since, client, label)
    return number
  elseif holder == attempt then
    return number
  end
  held = call('GET', KEYS[1])
end
check(held)
local fence, lease = string.match(held, '^(%d+):(%d+):', 18)
if not fence then
  return redis.error_reply('CORRUPT the hold is of another version')
end
if string.sub(held, 2, 17) == attempt then
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
if ARGV[4] == 'w' then
  local now = math.floor(now_us() / 1000)
  local seq
  if ARGV[3] == 'a' then
    local known = call('HGET', KEYS[3], attempt)
    seq = known and string.match(known, '^%d+:(%d+):')
  end
  if not seq then
    seq = string.format('%d', next_number(run))
    sweep(now)
  end
  call('HSET', KEYS[3], attempt,
    string.format('%d:%s:%s:%s:%s:x:%s:%s:%s', now + ttl, seq, ttl, since, ARGV[8], client, ARGV[9], label))
  call('ZADD', KEYS[2], seq, attempt)
  -- What a killed process leaves is gone a lease later.
  if call('PTTL', KEYS[2]) < tonumber(ttl) then
    call('PEXPIRE', KEYS[2], ttl + 1000)
  end
  if call('PTTL', KEYS[3]) < tonumber(ttl) then
    call('PEXPIRE', KEYS[3], ttl + 1000)
  end
end
return -math.max(left, 1)
