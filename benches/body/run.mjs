// Runs a WASI program in V8, as `./build.sh bench body` does: node --no-warnings run.mjs PROGRAM.wasm [ARGUMENTS].
import { readFile } from 'node:fs/promises';
import { argv, exit } from 'node:process';
import { WASI } from 'node:wasi';

const [, , file, ...rest] = argv;
const wasi = new WASI({ version: 'preview1', args: [file, ...rest] });
const module = await WebAssembly.compile(await readFile(file));
exit(wasi.start(await WebAssembly.instantiate(module, wasi.getImportObject())));
