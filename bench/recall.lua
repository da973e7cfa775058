-- One recall over and over; what came of it as one line of JSON at the end.
local file = assert(io.open(os.getenv("BENCH_BODY"), "rb"))
wrk.method = "POST"
wrk.body = file:read("*a")
wrk.headers["Content-Type"] = "application/json"
file:close()

function done(summary, latency, requests)
  io.write(string.format(
    '\n{"requests": %d, "seconds": %.6f, "errors": %d, "p10": %.1f, "p50": %.1f, "p99": %.1f}\n',
    summary.requests, summary.duration / 1e6,
    summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.status
      + summary.errors.timeout,
    latency:percentile(10), latency:percentile(50), latency:percentile(99)))
end
