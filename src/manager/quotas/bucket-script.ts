/**
 * One draw from a bucket in Redis or Valkey, as one atomic step on the server's clock. It computes what `draw` in
 * bucket.ts does.
 *
 * KEYS[1] holds tokens, remainder, updated_ms, limit_value, interval_ms and burst_value, each a double of eight bytes
 * in big-endian order. ARGV: the last three of these; the number of tokens requested; the time to live of the key in
 * milliseconds, after which an unused bucket is full again; and how far below 0 a reservation may leave the tokens,
 * which is 0 for a draw. A negative number of tokens is given back. Returns the new content of the key, followed by `1` if the
 * request was admitted, otherwise `0`. A key with any other content is replaced by a full bucket.
 *
 * Numbers are doubles here too. `math.fmod` is exact; Lua's `%` is not.
 */
export const BUCKET_SCRIPT = `
local EXACT_MAX = 9007199254740991
local fmod = math.fmod

local function divided(a, divisor)
  local rest = fmod(a, divisor)
  return (a - rest) / divisor, rest
end

local function added(a_whole, a_rest, b_whole, b_rest, divisor)
  if a_rest >= divisor - b_rest then return a_whole + b_whole + 1, a_rest - (divisor - b_rest) end
  return a_whole + b_whole, a_rest + b_rest
end

local function share(a, b, divisor)
  local product = a * b
  if product <= EXACT_MAX then return divided(product, divisor) end
  local once_whole, once_rest = divided(b, divisor)
  local whole, rest, digit = 0, 0, 4503599627370496
  while digit >= 1 do
    whole, rest = added(whole, rest, whole, rest, divisor)
    if a >= digit then
      a = a - digit
      whole, rest = added(whole, rest, once_whole, once_rest, divisor)
    end
    digit = digit / 2
  end
  return whole, rest
end

local function whole(number, least, most)
  return number >= least and number <= most and fmod(number, 1) == 0
end

local function bucket(stored, debt_max)
  if type(stored) ~= 'string' or #stored ~= 48 then return nil end
  local t, r, u, l, i, b = struct.unpack('>dddddd', stored)
  local is_policy = whole(l, 0, EXACT_MAX) and whole(i, 1, EXACT_MAX) and whole(b, 0, EXACT_MAX)
  if is_policy and whole(t, -debt_max, b) and whole(r, 0, i - 1) and whole(u, 0, EXACT_MAX) then return t, r, u, l, i, b end
end

local call = redis.call
local limit, interval, burst, requested = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local forget_ms, debt_max = tonumber(ARGV[5]), tonumber(ARGV[6])
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local tokens, remainder, is_kept, is_ahead = burst, 0, false, false

local t, r, u, l, i, b = bucket(redis.pcall('GET', KEYS[1]), debt_max)
if t then
  is_kept, is_ahead = l == limit and i == interval and b == burst, u > now
  if t < b then
    local elapsed, part = divided(math.max(0, now - u), i)
    local gained, room = elapsed * l, b - t
    if gained < room then
      local whole, rest = share(part, l, i)
      whole, r = added(whole, rest, 0, r, i)
      gained = gained + whole
    end
    if gained >= room then t, r = b, 0 else t = t + gained end
  end
  if is_kept then
    tokens, remainder = t, r
  elseif t < 0 then
    tokens = t
  elseif b > 0 then
    tokens = share(t, burst, b)
  end
end

local is_admitted = requested < 0 or (limit > 0 and tokens >= requested - debt_max)
if is_admitted then tokens = math.min(burst, tokens - requested) end
if tokens == burst then remainder = 0 end
if tokens < 0 and limit > 0 then forget_ms = math.min(1e12, forget_ms + math.ceil(-tokens / limit * interval)) end
local state = struct.pack('>dddddd', tokens, remainder, now, limit, interval, burst)
-- A refill can be computed later with the same result: a refusal writes nothing, unless the clock went back.
if is_admitted or not is_kept or is_ahead then call('SET', KEYS[1], state, 'PX', string.format('%.0f', forget_ms)) end
return state .. (is_admitted and '1' or '0')
`;
