package webhook

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"reflect"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/soloist-dev/soloist/internal/inject"
)

// maxReview is above the API server's own limit for a request with an object (3 MB).
const maxReview = 8 << 20

// Handler answers reviews of pods. A pod that does not ask is allowed as it is; what is
// wrong with the annotations of one that does is said in the refusal.
func Handler(o inject.Options, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); r.Method != http.MethodPost || kind != "application/json" {
			http.Error(w, "a review must be posted as application/json", http.StatusUnsupportedMediaType)
			return
		}
		var review admissionv1.AdmissionReview
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxReview))
		if err == nil {
			err = json.Unmarshal(body, &review)
		}
		if err != nil || review.Request == nil {
			http.Error(w, "the body must be an AdmissionReview with a request", http.StatusBadRequest)
			return
		}
		answer := judge(review.Request, o)
		answer.UID = review.Request.UID
		log.Info("review", "namespace", review.Request.Namespace, "name", review.Request.Name,
			"allowed", answer.Allowed, "patched", answer.Patch != nil)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: answer})
	})
}

func judge(r *admissionv1.AdmissionRequest, o inject.Options) *admissionv1.AdmissionResponse {
	var before corev1.Pod
	if err := json.Unmarshal(r.Object.Raw, &before); err != nil {
		return refuse(fmt.Errorf("soloist: the object is no pod: %w", err))
	}
	switch ask := before.Annotations[inject.Ask]; ask {
	case "", "disabled":
		return &admissionv1.AdmissionResponse{Allowed: true}
	case "enabled":
	default:
		return refuse(fmt.Errorf("soloist: annotation %s must be enabled or disabled, is %q", inject.Ask, ask))
	}
	after := before.DeepCopy()
	if err := inject.Pod(after, o); err != nil {
		return refuse(err)
	}
	operations := patch(&before, after)
	if len(operations) == 0 {
		return &admissionv1.AdmissionResponse{Allowed: true}
	}
	body, err := json.Marshal(operations)
	if err != nil {
		return refuse(err)
	}
	kind := admissionv1.PatchTypeJSONPatch
	return &admissionv1.AdmissionResponse{Allowed: true, Patch: body, PatchType: &kind}
}

func refuse(err error) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity,
		Reason: metav1.StatusReasonInvalid, Message: err.Error(),
	}}
}

// operation is one of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// patch returns what inject.Pod did. Only what it adds is in it: fields of the pod that
// are newer than this program's types stay as they are.
func patch(before, after *corev1.Pod) []operation {
	var ops []operation
	add := func(path string, value any) { ops = append(ops, operation{"add", path, value}) }
	if old, now := before.Spec.InitContainers, after.Spec.InitContainers; len(now) > len(old) {
		if len(old) == 0 {
			add("/spec/initContainers", now)
		} else {
			add("/spec/initContainers/0", now[0])
		}
	}
	if old, now := before.Spec.ReadinessGates, after.Spec.ReadinessGates; len(now) > len(old) {
		if len(old) == 0 {
			add("/spec/readinessGates", now)
		} else {
			add("/spec/readinessGates/-", now[len(now)-1])
		}
	}
	for i := range after.Spec.Containers {
		old, now := before.Spec.Containers[i].Env, after.Spec.Containers[i].Env
		path := fmt.Sprintf("/spec/containers/%d/env", i)
		switch {
		case reflect.DeepEqual(old, now):
		case len(old) == 0:
			add(path, now)
		default:
			for _, v := range now[len(old):] {
				add(path+"/-", v)
			}
		}
	}
	return ops
}
