package e2e

import (
	"os"
	"testing"

	"github.com/soloist-dev/soloist/e2e/internal/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }
