package config
import ("testing";"time";"github.com/soloist-dev/soloist/internal/lease/redislease";"math/rand/v2";"strings")
func TestZZ(t *testing.T){
 for _,u:=range []string{"redis://r","REDISS://u:h@[::1]:6380/15","redis://:h@r?db=3","unix:///run/redis.sock?db=2","unix://u:h@/run/redis.sock","redis://r/?db=1","redis://r//3/","redis://:p@s@r/0","unix://:h@/x@y"}{
  if _,err:=NewStoreURL(u).parse();err!=nil{t.Error(u,err)}
  s,err:=redislease.Open(redislease.Options{URL:u,Lease:time.Second}); if err!=nil{t.Error(u,err);continue}; s.Close()
 }
 toks:=[]string{"--lock","--lock=a","a","b=2","--store=redis://r","--store","redis://u:hunter2@r","--bogus","-z","-o","-ojson","json","--","---","--=","--=x","-lock=a","--lease-duration","1h","--timeout=1s","-h","--help=false","--done","--done=false","--hold-off=1s","-test.v","","-","--name=n","--slots=1","redis://:hunter2@h/x","--http-address=[::1]:5","-oh","-ho"}
 ok:=0
 for range 60000 { n:=rand.IntN(7); var a []string; for range n {a=append(a,toks[rand.IntN(len(toks))])}
  env:=least; if rand.IntN(2)==0 {env=append([]string{"SOLOIST_STORE=redis://:hunter2@r"},least...)}
  c,_,err:=Parse(verbs[rand.IntN(len(verbs))].name,a,env)
  if err==nil {ok++; if c.Validate()!=nil{t.Fatal(a)}} else if strings.Contains(err.Error(),"hunter2"){t.Fatal(a,err)}
 }
 t.Log(ok)
}
