-- The rest of mutex_release: somebody waits, or it is not ours, or it is taken away.
local run = KEYS[5] and ARGV[#ARGV]
local named = (#ARGV == 4 or not run) and ARGV[3]
local done = 1
if not ours then
  local attempt = sub(ARGV[1], 2)
  done = call('HDEL', KEYS[4], attempt)
  call('ZREM', KEYS[3], attempt .. PAD)
  if done == 1 then
    tidy()
  end
  -- After a write: an old server out of memory takes this then.
  vouch(run)
  if held or done == 0 then
    return done
  end
elseif named then
  -- Told first, then freed.
  local client = match(held, '^%d+:%d+:%d+:[-%a]*:(%w*):', 18)
  if client and client ~= '' then
    redis.pcall('PUBLISH', sub(ARGV[2], 9) .. client, 'e' .. sub(ARGV[1], 2) .. named)
  end
end
if hand_over(nil, nil, run, ARGV[2], first) == nil then
  call('DEL', KEYS[1])
end
vouch(run)
return done
