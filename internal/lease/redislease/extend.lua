-- EXTEND: renew a lease, and raise its fence if asked to.
-- KEYS fn, q, lk
-- ARGV 1 token  2 ttl ms  3 fence to raise to, or 0  4 kind
-- Returns {1, left before, waiting}   {0} not held   {-1, stored fence} fence not higher

local fn, q, lk = KEYS[1], KEYS[2], KEYS[3]
local token, ttl, raise = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

if not ttl or ttl < 1 then return redis.error_reply('INVALID ttl must be at least 1 ms') end

local value = redis.call('GET', lk)
if not mine(value, token) then return {0} end

local own = string.match(value, '^%S+ (%S+)')
if tonumber(own) <= tonumber(redis.call('HGET', fn, 'r') or 0) then return {0} end -- revoked
if raise > 0 and raise ~= tonumber(own) then -- a repeated raise has been done
  if raise >= 2^53 then return redis.error_reply('INVALID fence out of range') end
  local stored = redis.call('HGET', fn, 'f') or own
  if raise <= tonumber(stored) then return {-1, stored} end
  local fence = string.format('%.0f', raise)
  own = fence
  redis.call('HSET', fn, 'f', fence)
  redis.call('SET', lk, token .. ' ' .. fence .. string.match(value, '^%S+ %S+(.*)$'), 'KEEPTTL')
end

-- What is known of the lock lives on with its lease, however long that is held.
if redis.call('PEXPIRE', fn, 30 * DAY) == 0 then
  redis.call('HSET', fn, 'f', own, 'k', ARGV[4])
  redis.call('PEXPIRE', fn, 30 * DAY)
end

local left = redis.call('PTTL', lk)
if left < ttl then redis.call('PEXPIRE', lk, ttl) end
return {1, left, redis.call('ZCARD', q)}
