// Package config reads what a verb of the sidecar is told: flags, environment
// variables, and the defaults of both.
//
// Every flag --some-flag has a variable SOLOIST_SOME_FLAG, which is its default: a
// flag given on the command line wins. Set but empty is a value like any other. What
// can't be parsed is an error that names flag and variable; a SOLOIST_… variable that
// belongs to no flag of any verb is a warning, unless Kubernetes made it from a
// Service, or the sidecar itself gives it to apps and children. Repeated flags take
// one value each; their variables are split at white space.
//
// Two flags have no variable, because they state a fact about one request: --done and
// --fence (SOLOIST_FENCE is what children are told). The password of the store has no
// flag, because command lines are public: it comes from SOLOIST_STORE_PASSWORD, from a
// file, or in the URL in SOLOIST_STORE.
//
// All problems are reported at once. To add a verb: an entry in verbs, its flags in
// declare, its rules in [Config.Validate].
package config
