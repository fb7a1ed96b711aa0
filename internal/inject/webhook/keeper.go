package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

var (
	secrets  = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	webhooks = schema.GroupVersionResource{
		Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations",
	}
)

const (
	look      = time.Minute // how often the Secret and the configuration are read again
	lookAgain = time.Second // after a failure
)

// Keeper keeps the webhook's certificate: in a Secret that all pods of the webhook share,
// in the webhook's configuration, by which the API server knows it, and at hand for TLS.
// Whoever finds it missing or old renews it; of two that do so at once the Secret's
// version lets one win. Its methods are safe for concurrent use.
type Keeper struct {
	API       dynamic.Interface
	Namespace string
	Secret    string        // it must be there; what is in it may be missing
	Webhook   string        // the configuration's name
	Service   string        // by whose name the API server calls
	Lasts     time.Duration // a certificate
	Log       *slog.Logger

	current atomic.Pointer[tls.Certificate]
}

func (k *Keeper) host() string { return k.Service + "." + k.Namespace + ".svc" }

// Certificate is for tls.Config.GetCertificate.
func (k *Keeper) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := k.current.Load(); c != nil {
		return c, nil
	}
	return nil, errors.New("no certificate yet")
}

// Ready reports whether the API server can call.
func (k *Keeper) Ready() bool { return k.current.Load() != nil }

// Run keeps the certificate until ctx is done.
func (k *Keeper) Run(ctx context.Context) {
	for failing := false; ; {
		wait := min(look, k.Lasts/10)
		call, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := k.Step(call)
		cancel()
		if err != nil {
			wait = lookAgain
			if !failing && ctx.Err() == nil {
				k.Log.Warn("can't keep the certificate; trying on", "error", err)
			}
		}
		failing = err != nil
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// Step looks once: it renews what is due, tells the API server, and takes the certificate.
func (k *Keeper) Step(ctx context.Context) error {
	secret, err := k.API.Resource(secrets).Namespace(k.Namespace).Get(ctx, k.Secret, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the Secret: %w", err)
	}
	b, err := read(secret)
	due, useless := b.due(k.host())
	if now := time.Now(); err != nil || useless != nil || now.After(due) {
		if b, err = b.renew(k.host(), k.Lasts, now); err != nil {
			return err
		}
		write(secret, b)
		if _, err := k.API.Resource(secrets).Namespace(k.Namespace).Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
			if apierrors.IsConflict(err) {
				return k.Step(ctx) // another pod was faster: take its
			}
			return fmt.Errorf("write the Secret: %w", err)
		}
		k.Log.Info("made a certificate", "host", k.host(), "lasts", k.Lasts)
	}
	// The API server first: what it trusts includes what others serve still.
	if err := k.publish(ctx, b.authorities); err != nil {
		return fmt.Errorf("tell the API server: %w", err)
	}
	pair, err := tls.X509KeyPair(b.certificate, b.key)
	if err != nil {
		return err
	}
	k.current.Store(&pair)
	return nil
}

// publish writes the authorities into each webhook of the configuration that lacks them.
func (k *Keeper) publish(ctx context.Context, authorities []byte) error {
	config, err := k.API.Resource(webhooks).Get(ctx, k.Webhook, metav1.GetOptions{})
	if err != nil {
		return err
	}
	all, _, err := unstructured.NestedSlice(config.Object, "webhooks")
	if err != nil {
		return err
	}
	want := base64.StdEncoding.EncodeToString(authorities)
	var ops []operation
	for i, w := range all {
		hook, _ := w.(map[string]any)
		if got, _, _ := unstructured.NestedString(hook, "clientConfig", "caBundle"); got != want {
			name, _, _ := unstructured.NestedString(hook, "name")
			ops = append(ops, operation{"test", fmt.Sprintf("/webhooks/%d/name", i), name},
				operation{"add", fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", i), want})
		}
	}
	if len(ops) == 0 {
		return nil
	}
	body, err := json.Marshal(ops)
	if err != nil {
		return err
	}
	_, err = k.API.Resource(webhooks).Patch(ctx, k.Webhook, types.JSONPatchType, body, metav1.PatchOptions{})
	return err
}

// The keys of the Secret.
const (
	authoritiesKey  = "ca.crt"
	authorityKeyKey = "ca.key"
	certificateKey  = "tls.crt"
	keyKey          = "tls.key"
)

func read(secret *unstructured.Unstructured) (bundle, error) {
	data, _, err := unstructured.NestedStringMap(secret.Object, "data")
	get := func(key string) []byte {
		b, bad := base64.StdEncoding.DecodeString(data[key])
		err = errors.Join(err, bad)
		return bytes.Clone(b)
	}
	return bundle{get(authoritiesKey), get(authorityKeyKey), get(certificateKey), get(keyKey)}, err
}

func write(secret *unstructured.Unstructured, b bundle) {
	data := map[string]any{}
	for key, v := range map[string][]byte{
		authoritiesKey: b.authorities, authorityKeyKey: b.authorityKey, certificateKey: b.certificate, keyKey: b.key,
	} {
		data[key] = base64.StdEncoding.EncodeToString(v)
	}
	secret.Object["data"] = data
}
