package redistest

import "testing"

func TestCluster(t *testing.T) {
	CheckLeaks(t)
	c := StartCluster(t)
	was, replica := c.Master("key")
	if was == replica {
		t.Fatal("its own replica")
	}
	c.Failover("key")
	if now, _ := c.Master("key"); now != replica {
		t.Errorf("master is %s, want %s", now.Addr(), replica.Addr())
	}
	replica.Kill() // which was made master
	c.UntilMaster(was)
}

func TestSentinels(t *testing.T) {
	CheckLeaks(t)
	s := StartSentinels(t)
	was := s.Master()
	s.Failover()
	now := s.Master()
	if now == was {
		t.Error("the master is the same")
	}
	now.Kill()
	s.UntilNot(now)
}
