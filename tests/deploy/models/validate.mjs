// Validates custom resources against the schemas of the operators that define them.
// Runs beside its node_modules. Reads a JSON list of objects on stdin; prints one fault a line; exits 1 where
// there is one.
import { readFileSync } from "node:fs";

const MODELS = {
  "monitoring.coreos.com/v1": "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/",
  "cert-manager.io/v1": "@kubernetes-models/cert-manager/cert-manager.io/v1/",
};
let faults = 0;
for (const object of JSON.parse(readFileSync(0, "utf8"))) {
  const model = MODELS[object.apiVersion];
  try {
    if (!model) throw new Error(`no schema is known for ${object.apiVersion}`);
    const Kind = (await import(model + object.kind))[object.kind];
    new Kind(object).validate();
  } catch (error) {
    faults += 1;
    console.log(`${object.kind}/${object.metadata?.name}: ${error.message}`);
  }
}
process.exit(faults ? 1 : 0);
