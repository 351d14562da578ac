-- Renews places in line for mutexes. Flags: allow-oom.
--
-- KEYS  hold, queue and places of each
-- ARGV  1 stamp, then the attempt of each
-- Gives for each minus its lease in ms, as {it} if the mutex is free; its lease if it has become the
-- holder meanwhile, which is renewed as well, as {it} if it is asked to let go; or 0 if it is not
-- there.
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local match = string.match
local told = {}

local function renew(hold, queue, places, attempt)
  local held = call('GET', hold)
  if held and string.sub(held, 2, 17) == attempt then
    local ttl, asked = match(held, '^%d+:(%d+):%d+:%-?(a?)', 18)
    ttl = ttl and call('PEXPIRE', hold, ttl) == 1 and tonumber(ttl) or 0
    return asked == 'a' and { ttl } or ttl
  end
  local place = call('HGET', places, attempt)
  local expires, seq, ttl, who, stamp, label =
    match(place or '', '^(%d+):(%d+):(%d+):(%d+:%a*:%w*:%w*):(%d+):(.*)$')
  if not expires or tonumber(expires) <= now then
    return 0
  end
  call('PEXPIRE', places, math.max(call('PTTL', places), ttl + 1000))
  -- An older request may be overtaken on another connection.
  stamp = tonumber(stamp) < tonumber(ARGV[1]) and ARGV[1] or stamp
  call('HSET', places, attempt, string.format('%d:%s:%s:%s:%s:%s', now + ttl, seq, ttl, who, stamp, label))
  -- One that could not be reached once is in line again, where it was; padded as in mutex_hand_over.
  call('ZADD', queue, seq, attempt .. '.................................................')
  call('PEXPIRE', queue, math.max(call('PTTL', queue), ttl + 1000))
  if not held and not told[hold] then
    -- Its holder has died, maybe one whose lease was shorter than what the waiters last saw. One of
    -- them is enough: whoever asks lets in who comes next.
    told[hold] = true
    return { -tonumber(ttl) }
  end
  return -tonumber(ttl)
end

local answers = {}
for i = 1, #ARGV - 1 do
  local done, answer = pcall(renew, KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i], ARGV[i + 1])
  if not done and not match(answer.err or answer, 'WRONGTYPE') then
    error(answer, 0)
  end
  -- Something else in place of a line costs that place, and no other of the batch.
  answers[i] = done and answer or 0
end
return answers
