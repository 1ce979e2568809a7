// Builds the page into dist/, or with --tests the unit tests into build/. The same sources give the same bytes.
import { build } from "esbuild";
import { cp, readFile, readdir, rm } from "node:fs/promises";

const here = new URL("./", import.meta.url);
const path = (name) => new URL(name, here).pathname;
const common = {
  absWorkingDir: path("."),
  bundle: true,
  charset: "utf8",
  format: "esm",
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
  target: "es2022",
};

async function page() {
  const [license, manifest] = await Promise.all(
    ["LICENSE", "package.json"].map((name) => readFile(path(`node_modules/preact/${name}`), "utf8")),
  );
  const { version } = JSON.parse(manifest);
  await rm(path("dist"), { recursive: true, force: true });
  await build({
    ...common,
    banner: { js: `/* Contains Preact ${version}.\n${license.trim()}\n*/` },
    entryPoints: [
      { in: "src/main.tsx", out: "app" },
      { in: "src/style/app.css", out: "app" },
    ],
    legalComments: "none",
    minify: true,
    outdir: "dist",
  });
  await cp(path("static"), path("dist"), { recursive: true });
}

async function tests() {
  const names = (await readdir(path("test"))).filter((name) => name.endsWith(".test.ts"));
  await rm(path("build"), { recursive: true, force: true });
  await build({
    ...common,
    entryPoints: names.map((name) => `test/${name}`),
    outdir: "build",
    outExtension: { ".js": ".mjs" },
    platform: "node",
  });
}

await (process.argv.includes("--tests") ? tests() : page());
