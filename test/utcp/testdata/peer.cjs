// A peer on the official TypeScript SDK of UTCP. It takes one JSON argument:
//   {"serve": true}                        serves a manual and its tools, and prints "listening on URL"
//   {"manual": URL, "calls": [{tool, args}]} reads a manual, makes the calls, and prints one JSON object
const http = require("node:http");
const path = require("node:path");
const { createRequire } = require("node:module");

// The SDK logs to stdout, which is for the report alone.
console.log = console.error;

const peers = createRequire(path.join(process.env.TOOLCRIB_PEERS, "package.json"));
const { UtcpClient, UtcpManualSchema } = peers("@utcp/sdk");
const { HttpCallTemplateSerializer } = peers("@utcp/http");

const templates = new HttpCallTemplateSerializer();

function tool(name, properties, template) {
  const call = templates.validateDict({ call_template_type: "http", ...template });
  return {
    name,
    description: `The tool ${name}.`,
    tags: ["peer"],
    inputs: { type: "object", properties, required: Object.keys(properties) },
    outputs: { type: "object" },
    tool_call_template: templates.toDict(call),
  };
}

function manual(base) {
  const text = { type: "string" };
  return UtcpManualSchema.parse({
    utcp_version: "1.0.1",
    manual_version: "1.0.0",
    tools: [
      tool("add", { a: { type: "number" }, b: { type: "number" } }, { url: `${base}/add` }),
      tool("user", { id: text, verbose: { type: "boolean" } }, { url: `${base}/users/{id}` }),
      tool("save", { body: { type: "object" }, "X-Trace": text }, { url: `${base}/save`, http_method: "POST", header_fields: ["X-Trace"] }),
      tool("key", {}, { url: `${base}/key`, auth: { auth_type: "api_key", api_key: "peer-key", var_name: "X-Key", location: "header" } }),
      tool("login", {}, { url: `${base}/login`, auth: { auth_type: "basic", username: "me", password: "pw" } }),
    ],
  });
}

function serve() {
  const server = http.createServer(async (request, response) => {
    const base = `http://127.0.0.1:${server.address().port}`;
    response.setHeader("content-type", "application/json");
    if (request.url === "/utcp") return response.end(JSON.stringify(manual(base)));
    let body = "";
    for await (const chunk of request) body += chunk;
    const url = new URL(request.url, base);
    if (url.pathname === "/add") {
      return response.end(JSON.stringify({ sum: Number(url.searchParams.get("a")) + Number(url.searchParams.get("b")) }));
    }
    const { authorization, "x-key": key, "x-trace": trace, "content-type": type } = request.headers;
    response.end(JSON.stringify({ method: request.method, url: request.url, body, authorization, key, trace, type }));
  });
  server.listen(0, "127.0.0.1", () => process.stdout.write(`listening on http://127.0.0.1:${server.address().port}\n`));
}

async function use(job) {
  const client = await UtcpClient.create(process.cwd(), {
    manual_call_templates: [{ name: "m", call_template_type: "http", url: job.manual, http_method: "GET" }],
  });
  const report = { tools: (await client.searchTools("", 100)).map((found) => found.name), results: [] };
  for (const call of job.calls) {
    try {
      report.results.push({ value: await client.callTool(`m.${call.tool}`, call.args) });
    } catch (error) {
      report.results.push({ error: String(error) });
    }
  }
  await client.close?.();
  process.stdout.write(JSON.stringify(report) + "\n", () => process.exit(0));
}

const job = JSON.parse(process.argv[2]);
if (job.serve) serve();
else
  use(job).catch((error) => {
    console.error(error);
    process.exit(1);
  });
