// Runs an ONNX model in JavaScript: node run.js MODEL INPUT, where INPUT is JSON, {"shape": [...], "numbers": [...]}; prints the output so.
const fs = require("fs");
const ort = require("onnxruntime-web");

async function main() {
  const [model, input] = process.argv.slice(2);
  const { shape, numbers } = JSON.parse(fs.readFileSync(input, "utf8"));
  ort.env.wasm.numThreads = 1;
  const session = await ort.InferenceSession.create(fs.readFileSync(model));
  const feeds = { [session.inputNames[0]]: new ort.Tensor("float32", Float32Array.from(numbers), shape) };
  const output = (await session.run(feeds))[session.outputNames[0]];
  console.log(JSON.stringify({ shape: output.dims, numbers: Array.from(output.data) }));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
