// Package webhook serves package inject to the API server as a mutating admission webhook,
// with certificates that it makes and renews itself.
//
// It is net/http and the wire types of admission.k8s.io. A controller framework would
// bring caches, queues and leader election to something that answers one question.
package webhook
