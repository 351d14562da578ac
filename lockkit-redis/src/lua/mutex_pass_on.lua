-- The rest of mutex_release: somebody waits, or it is not ours, or it is taken away.
local done = 1
if not ours then
  done = call('HDEL', KEYS[3], ARGV[1])
  call('ZREM', KEYS[2], ARGV[1])
  if done == 1 then
    tidy()
  end
  -- After a write: an old server out of memory takes this then.
  vouch(ARGV[2])
  if held or done == 0 then
    return done
  end
elseif ARGV[4] ~= '' then
  -- Told first, then freed.
  local client = string.match(held, '^%d+:%d+:%d+:[-%a]*:(%w*):', 18)
  if client and client ~= '' then
    redis.pcall('PUBLISH', ARGV[3] .. client, 'e' .. ARGV[1] .. ARGV[4])
  end
end
if hand_over(nil, nil, ARGV[2], ARGV[3]) == nil then
  call('DEL', KEYS[1])
end
vouch(ARGV[2])
return done
