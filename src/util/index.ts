// Small things that several rooms need and no library offers.
export { defaultStateDir } from './state-dir.ts'
