// Starts `aerie serve` with the bundled small model, for tests with clients of npm.
import { execFileSync, spawn } from "node:child_process";
import path from "node:path";

export const [program, repository] = process.argv.slice(2);
const model = path.join(repository, "models", "aerie-tiny");
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(AERIE_|OPENAI_|HF_)/.test(name)));
env.AERIE_DEVICE = "cpu";

// The server's process and its address, with the key "secret".
export async function serve(...flags) {
  const server = spawn(program, ["serve", "--port", "0", "-m", model, "-t", "1", ...flags],
    { env: { ...env, AERIE_API_KEY: "secret" }, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  const port = await new Promise((resolve, reject) => {
    server.stderr.on("data", (data) => {
      said += data;
      const found = / at http:\/\/\S+:(\d+)\n/.exec(said);
      if (found) resolve(found[1]);
    });
    server.on("exit", () => reject(new Error(said)));
  });
  return { server, baseURL: `http://127.0.0.1:${port}/v1` };
}

export function generate(prompt, ...flags) {
  return JSON.parse(execFileSync(program, ["generate", "-m", model, "-p", prompt, "-t", "1", "-q", "--json", ...flags], { env }));
}
