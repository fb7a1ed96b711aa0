// Package image writes container images as docker archives, which kind, containerd and docker load: an image of
// one's own static programs, and one of the Redis that is installed here. It needs no builder, no registry and
// no base image, and the same input gives the same bytes.
package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A config is the part of an image's configuration that is used here.
type config struct {
	Architecture string    `json:"architecture"`
	OS           string    `json:"os"`
	Config       runConfig `json:"config"`
	RootFS       rootFS    `json:"rootfs"`
}

type runConfig struct {
	User       string   `json:"User"`
	Entrypoint []string `json:"Entrypoint"`
	Env        []string `json:"Env"`
	WorkingDir string   `json:"WorkingDir,omitempty"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

// A layer is the only one of its image. Its files have no times and belong to root, unless said otherwise.
type layer struct {
	buf bytes.Buffer
	tw  *tar.Writer
}

func newLayer() *layer {
	l := &layer{}
	l.tw = tar.NewWriter(&l.buf)
	return l
}

// file adds the file that the path leads to, links followed, under a name.
func (l *layer) file(name, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return add(l.tw, strings.TrimPrefix(name, "/"), 0o755, data)
}

func (l *layer) dir(name string, mode int64, uid int) error {
	return l.tw.WriteHeader(&tar.Header{
		Typeflag: tar.TypeDir, Name: strings.TrimPrefix(name, "/") + "/", Mode: mode, Uid: uid, Gid: uid, Format: tar.FormatUSTAR,
	})
}

// write writes the image of that layer. The file appears whole or not at all.
func (l *layer) write(out, ref, arch string, run runConfig) error {
	if err := l.tw.Close(); err != nil {
		return err
	}
	digest := sum(l.buf.Bytes())
	cfg, err := json.Marshal(config{arch, "linux", run, rootFS{"layers", []string{"sha256:" + digest}}})
	if err != nil {
		return err
	}
	cfgName, layerName := sum(cfg)+".json", digest+"/layer.tar"
	manifest, err := json.Marshal([]struct {
		Config   string
		RepoTags []string
		Layers   []string
	}{{cfgName, []string{ref}, []string{layerName}}})
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	for _, f := range []struct {
		name string
		data []byte
	}{{"manifest.json", manifest}, {cfgName, cfg}, {layerName, l.buf.Bytes()}} {
		if err := add(tw, f.name, 0o644, f.data); err != nil {
			return err
		}
	}
	if err := tw.Close(); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(out), ".image-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // fails once it is renamed
	_, err = tmp.Write(buf.Bytes())
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", out, err)
	}
	return os.Rename(tmp.Name(), out)
}

func add(tw *tar.Writer, name string, mode int64, data []byte) error {
	err := tw.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(data)), Format: tar.FormatUSTAR})
	if err == nil {
		_, err = tw.Write(data)
	}
	if err != nil {
		return fmt.Errorf("add %s: %w", name, err)
	}
	return nil
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}
